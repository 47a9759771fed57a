"""A trial in a snapshot: one pod, one node that refuses it, and what can be tried there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import PodRecord, placed_on, placed_pod
from bayplan.kube.daemons import belongs_to_node
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode

F = TypeVar("F", bound=Filter)
T = TypeVar("T")
MOST_TRIED = 24
"""Pods of one node that are tried, the least important first."""


@dataclass(frozen=True, slots=True)
class SnapshotTrial:
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
    def cluster(self) -> Cluster:
        """The cluster as it now is."""
        return self.snapshot.cluster

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
        return next((one for one in self.filters if one.name == self.refusal.plugin), None)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The pod's filters."""
        evaluation = self.snapshot.evaluation(self.pod)
        return () if isinstance(evaluation, Refusal) else evaluation.filters

    def filter(self, kind: type[F]) -> F | None:
        """The pod's filter of a kind, if it has one."""
        return self.once(kind, lambda: self._filter(kind))

    def _filter(self, kind: type[F]) -> F | None:
        return next((one for one in self.filters if isinstance(one, kind)), None)

    # -- what is tried -------------------------------------------------------------------------

    def priority(self, pod: Pod) -> int:
        """How important a pod is."""
        return self.snapshot.priority(pod)

    def refusal_of(self, pod: Pod) -> Refusal | None:
        """What the node would say of the pod if it were so; None if it would take it."""
        return self.snapshot.refusal(pod, self.name)

    def may_move(self, pod: Pod) -> bool:
        """Whether a pod can be asked to go elsewhere."""
        return not (belongs_to_node(pod) or pod.is_terminating or pod.key == self.pod.key)

    def move_one_of(self, records: Sequence[PodRecord]) -> Iterable[Step]:
        """The first of these pods that can go elsewhere, after which the pod fits."""
        pods = [placed_pod(record) for record in records]
        movable = [pod for pod in pods if self.may_move(pod)]
        movable.sort(key=lambda pod: (self.priority(pod), pod.key))
        for pod in movable[:MOST_TRIED]:
            target = self._target(pod)
            if target:
                text = f"move pod {pod.key} from node {pod.spec.node_name} to node {target}"
                cost = 4.0 if self.priority(pod) > self.priority(self.pod) else 3.0
                yield Step(FixKind.MOVE_POD, text, cost, self.pod, (placed_on(pod, target),))
                return

    def _target(self, pod: Pod) -> str | None:
        """Where a pod would go if the waiting pod took its place; None if that does not work."""
        snapshot, unplaced = self.snapshot, placed_on(pod, "")
        with snapshot.fork():
            snapshot.put(unplaced)
            if snapshot.refusal(self.pod, self.name) is not None:
                return None
            snapshot.assume(self.pod, snapshot.decision_on(self.pod, self.name))
            target = snapshot.decide(unplaced).node
        return target if target != pod.spec.node_name else None
