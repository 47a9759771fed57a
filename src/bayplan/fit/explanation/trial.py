"""A trial: one pod, one node that refuses it, and what can be known of why."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bayplan.fit.plugins.base import Filter
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.pods import NO_REQUIREMENTS, PodRequirements
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode

F = TypeVar("F", bound=Filter)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Trial:
    """A refusal in a snapshot as it now is (steps may have been taken already)."""

    snapshot: Snapshot
    pod: Pod
    name: str
    """The node's name."""
    refusal: Refusal
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False)
    """What has been worked out for all nodes; trials of one pod share it, while nothing changes."""

    def once(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """What is the same for many nodes, worked out once."""
        if key not in self.memo:
            self.memo[key] = work_out()
        found: T = self.memo[key]
        return found

    @property
    def slot(self) -> int:
        """The node's slot."""
        return self.snapshot.cluster.slots.by_name[self.name]

    @property
    def node(self) -> Node:
        """The node as it now is."""
        return self.snapshot.cluster.node_at(self.slot)

    @property
    def csinode(self) -> CSINode | None:
        """The node's CSINode as it now is."""
        return self.snapshot.cluster.csinodes.get(self.name)

    @property
    def needs(self) -> PodRequirements:
        """What the pod needs of storage."""
        evaluation = self.snapshot.evaluation(self.pod)
        return NO_REQUIREMENTS if isinstance(evaluation, Refusal) else evaluation.question.needs

    def as_refused(self) -> AbstractContextManager[None]:
        """The cluster as the node refused the pod: beside pods that are nominated for the node, if
        those leave no room. Ask for no decision meanwhile.
        """
        check = self.once("check", lambda: self.snapshot.nominated_pods_check(self.pod))
        is_beside = check.refusal_beside(self.slot) is not None
        return check.beside(self.slot) if is_beside else nullcontext()

    @property
    def refusing(self) -> Filter | None:
        """The filter that refuses, if it has a say of the pod."""
        return self.once(("refusing", self.refusal.plugin), self._refusing)

    def _refusing(self) -> Filter | None:
        evaluation = self.snapshot.evaluation(self.pod)
        filters = () if isinstance(evaluation, Refusal) else evaluation.filters
        return next((one for one in filters if one.name == self.refusal.plugin), None)

    def filter(self, kind: type[F]) -> F | None:
        """The pod's filter of a kind, if it has one."""
        return self.once(kind, lambda: filter_of(self.snapshot, self.pod, kind))


def filter_of(snapshot: Snapshot, pod: Pod, kind: type[F]) -> F | None:
    """A pod's filter of a kind, if it has one."""
    evaluation = snapshot.evaluation(pod)
    filters = () if isinstance(evaluation, Refusal) else evaluation.filters
    return next((one for one in filters if isinstance(one, kind)), None)
