"""How plugins explain their refusals: a trial, and what a plugin returns for it.

A trial is one pod, one node that refuses it, and what can be tried there. A plugin returns the
facts behind its refusal, proposes steps that could lift it, and estimates what lifting it costs at
the least, so that thousands of nodes are a few groups. The package `explanation` makes the trials;
plugins know only this protocol. Steps that several plugins propose are here as well: to move
another pod away, and to set the label of a topology domain on a node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bayplan.fit.decision import Refusal
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode

F = TypeVar("F", bound=Filter)
T = TypeVar("T")
UNREPAIRABLE = 100.0
"""The cost of lifting a refusal for which there is no step."""


class Trial(Protocol):
    """A refusal in a cluster as it is now (steps may have been taken already)."""

    @property
    def pod(self) -> Pod:
        """The pod as it now is."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def refusal(self) -> Refusal:
        """The node's refusal of the pod."""

    @property
    def cluster(self) -> ClusterState:
        """The cluster as it now is."""

    @property
    def slot(self) -> int:
        """The node's slot."""

    @property
    def node(self) -> Node:
        """The node as it now is."""

    @property
    def csinode(self) -> CSINode | None:
        """The node's CSINode as it now is."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The pod's filters."""

    @property
    def refusing_filter(self) -> Filter | None:
        """The filter that refuses, if the pod has it."""

    def filter(self, kind: type[F]) -> F | None:
        """The pod's filter of a kind, if it has one."""

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what is the same for many nodes, computed once."""

    def priority(self, pod: Pod) -> int:
        """Return a pod's priority."""

    def refusal_if(self, pod: Pod) -> Refusal | None:
        """Return the node's refusal of the pod if it were changed so; None if it would fit."""

    def can_move(self, pod: Pod) -> bool:
        """Whether a pod may be moved to another node."""

    def move_one(self, records: Sequence[PodRecord]) -> Iterable[Step]:
        """Propose to move the first of these pods that can be moved and after which the pod
        fits.
        """


Details = Callable[[Trial], Iterable[str]]
"""The facts behind a refusal."""
Propose = Callable[[Trial], Iterable[Step]]
"""Steps that might lift a refusal; whether they do is found out by taking them in a fork."""


class Proposal(NamedTuple):
    """A way to look for steps."""

    propose: Propose
    tries: bool = False
    """Whether it tries what it proposes; others read what is short, as the node refused the pod."""


class ChangedNode(NamedTuple):
    """A new node, changed, and in what it is not like the node that it is a copy of."""

    node: Node
    difference: str
    """To be read after the name of that node: `, but in zone-a`."""


class NodeChange(NamedTuple):
    """A way to change a copy of a node so that a pod may fit there."""

    change: Callable[[Trial], ChangedNode | None]
    """The changed node; None if there is no reason to change it. The trial is of the copy."""
    kind: FixKind
    cost: float
    """What a new node that is changed so costs; the cheapest changes are tried first."""


Costs = npt.NDArray[np.float64]
NodeRepair = tuple[Hashable, float]
"""What the nodes of a group have in common, and what lifting the refusal costs at the least."""
OfNode = Callable[[Node, int], NodeRepair]


@dataclass(frozen=True, slots=True)
class RepairEstimate:
    """What lifting a filter's refusals costs at the least, by node, and which nodes are one
    group.
    """

    costs: Costs
    groups_by_node: Sequence[Hashable] | None = None
    """What each has in common with others of its group; None if all are one group."""


EstimateRepair = Callable[[Filter, Pod, ClusterState, SlotArray], RepairEstimate]
"""Estimates the repair of the nodes of these slots, which the filter refuses."""


def repair_by_node(of_node: OfNode, cluster: ClusterState, slots: SlotArray) -> RepairEstimate:
    """Estimate the repair of nodes one by one."""
    found = [of_node(cluster.node_at(slot), slot) for slot in slots.tolist()]
    costs = np.array([cost for _, cost in found], dtype=np.float64)
    return RepairEstimate(costs, [like for like, _ in found])


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """How a plugin explains its refusals."""

    details: Details | None = None
    proposals: tuple[Proposal, ...] = ()
    least_cost: float | None = None
    """What the cheapest step costs that could lift its refusal; None if there is none."""
    new_node: NodeChange | None = None
    """How a copy of a node would have to be changed, where no node like those that are there will
    do.
    """
    estimate_repair: EstimateRepair | None = None
    """Estimates repairs; None if nodes with the same reasons are one group."""

    def repair_estimate(
        self, one: Filter, pod: Pod, cluster: ClusterState, slots: SlotArray
    ) -> RepairEstimate:
        """Estimate the repair of refused nodes."""
        if self.estimate_repair is not None:
            return self.estimate_repair(one, pod, cluster, slots)
        cost = UNREPAIRABLE if self.least_cost is None else self.least_cost
        return repair_by_node(lambda _, slot: (one.refusal(slot).reasons, cost), cluster, slots)


NO_EXPLAINER = Explainer()


def with_labels(node: Node, wanted: Mapping[str, str | None]) -> Node:
    """Return the node with these labels; None removes one."""
    merged = {**node.metadata.labels, **wanted}
    labels = {key: value for key, value in merged.items() if value is not None}
    return replace(node, metadata=replace(node.metadata, labels=labels))


# -- a pod in the way ------------------------------------------------------------------------------


def move_pod(trial: Trial) -> Iterable[Step]:
    """Propose to move the first pod of the node after which the pod fits."""
    records = trial.cluster.pods.by_node.get(trial.name, {}).values()
    refusing_filter = trial.refusing_filter
    return trial.move_one(
        [
            one
            for one in records
            if refusing_filter is None or refusing_filter.may_pass_without(one, trial.slot)
        ]
    )


def has_higher_priority(trial: Trial, key: str) -> bool:
    """Whether a running pod has a higher priority than the pending one."""
    record = trial.cluster.pods.by_key[key]
    return trial.priority(record.pod) > trial.priority(trial.pod)


# -- topology domains ------------------------------------------------------------------------------


def topology_keys(pod: Pod, _: ClusterState | None = None) -> frozenset[str]:
    """Return the topology keys of the pod's own rules."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = (term.topology_key for side in sides if side for term in side.required)
    spread = (one.topology_key for one in pod.spec.topology_spread_constraints)
    return frozenset((*terms, *spread))


def pods_in_domain(
    trial: Trial, topology_key: str, rule: Hashable, is_meant: Callable[[PodRecord], bool]
) -> list[PodRecord]:
    """Return the pods that a rule is about on nodes of the node's domain."""
    cluster = trial.cluster
    value = trial.node.metadata.labels.get(topology_key)

    def look() -> list[PodRecord]:
        slots = cluster.topology(topology_key).slots_of(value) if value is not None else ()
        there = (cluster.pods.by_node.get(cluster.slots.names[slot], {}) for slot in slots)
        return [record for records in there for record in records.values() if is_meant(record)]

    return trial.cached(("domain", topology_key, value, rule), look)


def repair_by_domain(
    one: Filter, pod: Pod, cluster: ClusterState, slots: SlotArray, cost: float
) -> RepairEstimate:
    """Estimate the repair of nodes, grouped by the topology domains that they are in."""
    keys = sorted(topology_keys(pod))

    def of_node(node: Node, slot: int) -> NodeRepair:
        labels = node.metadata.labels
        return (one.refusal(slot).reasons, *(labels.get(key) for key in keys)), cost

    return repair_by_node(of_node, cluster, slots)


def label_topology(trial: Trial) -> list[Step]:
    """Propose to set topology labels that the node lacks."""
    missing: dict[str, Sequence[str]] = {}
    for one in trial.filters:
        for key, values in one.missing_labels(trial.slot).items():
            missing.setdefault(key, values)
    wanted = {key: _value(trial, key, values) for key, values in missing.items()}
    labels = {key: value for key, value in wanted.items() if value}
    if not labels or len(labels) != len(missing):
        return []
    described = ", ".join(f"{key}={value}" for key, value in labels.items())
    text = f"set topology label {described} on node {trial.name}"
    puts = (with_labels(trial.node, labels),)
    return [Step(FixKind.LABEL_NODE, text, 2.0 * len(labels), trial.pod, puts)]


def _value(trial: Trial, key: str, values: Sequence[str]) -> str:
    """Return the domain: the node's own name for host names, or the first that suits."""
    if key == HOSTNAME:
        return trial.name
    return next(iter(values), "")
