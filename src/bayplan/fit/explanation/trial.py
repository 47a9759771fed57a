"""A trial in a snapshot: one pod, one node that refuses it, and what can be tried there.

kube-scheduler's reasons are short so that they can be counted. What a person then asks (how much is
free, which taint, which label, whose volumes, which pods) the plugin that refused tells, and it
proposes the steps that could lift the refusal; whether a step helps is found out by taking it in a
fork, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bayplan.fit.decision import Refusal
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.explanation import Proposal
from bayplan.fit.plugins.registry import BY_NAME, explainer_of
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.pods import PodRecord, placed_on, placed_pod
from bayplan.kube.daemonsets import belongs_to_node
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
    cache: dict[Hashable, Any] = field(default_factory=dict, compare=False)
    """What was computed for all nodes; trials of one pod share it, while nothing changes."""

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what is the same for many nodes, computed once."""
        if key not in self.cache:
            self.cache[key] = compute()
        found: T = self.cache[key]
        return found

    @property
    def cluster(self) -> ClusterState:
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
        """The cluster as the node refused the pod: with the pods that are nominated for the node,
        if it refuses because of them. Make no decision meanwhile.
        """
        check = self.cached("check", lambda: self.snapshot.nominated_pods_check(self.pod))
        is_beside = check.refusal_with_nominated(self.slot) is not None
        return check.with_nominated(self.slot) if is_beside else nullcontext()

    @property
    def refusing_filter(self) -> Filter | None:
        """The filter that refuses, if the pod has it."""
        return self.cached(("refusing", self.refusal.plugin), self._find_refusing_filter)

    def _find_refusing_filter(self) -> Filter | None:
        return next((one for one in self.filters if one.name == self.refusal.plugin), None)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The pod's filters."""
        evaluation = self.snapshot.evaluation(self.pod)
        return () if isinstance(evaluation, Refusal) else evaluation.filters

    def filter(self, kind: type[F]) -> F | None:
        """The pod's filter of a kind, if it has one."""
        return self.cached(kind, lambda: self._filter(kind))

    def _filter(self, kind: type[F]) -> F | None:
        return next((one for one in self.filters if isinstance(one, kind)), None)

    # -- what is tried -------------------------------------------------------------------------

    def priority(self, pod: Pod) -> int:
        """Return a pod's priority."""
        return self.snapshot.priority(pod)

    def refusal_if(self, pod: Pod) -> Refusal | None:
        """Return the node's refusal of the pod if it were changed so; None if it would fit."""
        return self.snapshot.refusal(pod, self.name)

    def can_move(self, pod: Pod) -> bool:
        """Whether a pod may be moved to another node."""
        return not (belongs_to_node(pod) or pod.is_terminating or pod.key == self.pod.key)

    def move_one(self, records: Sequence[PodRecord]) -> Iterable[Step]:
        """Propose to move the first of these pods that can be moved and after which the pod
        fits.
        """
        pods = [placed_pod(record) for record in records]
        movable = [pod for pod in pods if self.can_move(pod)]
        movable.sort(key=lambda pod: (self.priority(pod), pod.key))
        for pod in movable[:MOST_TRIED]:
            target = self._target(pod)
            if target:
                text = f"move pod {pod.key} from node {pod.spec.node_name} to node {target}"
                cost = 4.0 if self.priority(pod) > self.priority(self.pod) else 3.0
                yield Step(FixKind.MOVE_POD, text, cost, self.pod, (placed_on(pod, target),))
                return

    def _target(self, pod: Pod) -> str | None:
        """Return the node a pod would move to if the pending pod took its place; None if there is
        none.
        """
        snapshot, unplaced = self.snapshot, placed_on(pod, "")
        with snapshot.fork():
            snapshot.put(unplaced)
            if snapshot.refusal(self.pod, self.name) is not None:
                return None
            snapshot.assume(self.pod, snapshot.decision_on(self.pod, self.name))
            target = snapshot.decide(unplaced).node
        return target if target != pod.spec.node_name else None


# -- what the refusing plugin tells and proposes ---------------------------------------------------


def details_of(trial: SnapshotTrial) -> tuple[str, ...]:
    """Return the facts behind a refusal."""
    details = explainer_of(trial.refusal.plugin).details
    if details is None:
        return ()
    with trial.as_refused():
        return tuple(details(trial))


def steps_for(trial: SnapshotTrial) -> list[Step]:
    """Return steps that might lift a refusal."""
    proposals = explainer_of(trial.refusal.plugin).proposals
    return [step for proposal in proposals for step in _proposed(proposal, trial)]


def _proposed(proposal: Proposal, trial: SnapshotTrial) -> list[Step]:
    with nullcontext() if proposal.tries else trial.as_refused():
        return list(proposal.propose(trial))


def steps_before_nodes(snapshot: Snapshot, pod: Pod) -> list[Step]:
    """Return steps that might help a pod that is refused before any node is evaluated."""
    refusal = snapshot.evaluation(pod)
    plugin = BY_NAME.get(refusal.plugin) if isinstance(refusal, Refusal) else None
    propose = plugin.steps_before_nodes if plugin is not None else None
    return list(propose(snapshot.cluster, pod)) if propose is not None else []
