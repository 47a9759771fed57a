"""Simulates the removal of nodes, one after the other, in a fork that the caller keeps open.

A node that can be removed stays removed in the fork, with its pods moved and budgets spent, for the
nodes after it. While its own pods are moved, it stays as an empty, tainted node that no pod is
placed on: spreading still counts it as a domain.

Destinations are tried round-robin in the order of names, as in Cluster Autoscaler: from the node
after the last one used, so that full nodes are not tried first every time. Nodes are evaluated in
growing parts: a pod that fits soon costs a few nodes, and one that fits nowhere not much more than
one evaluation of all. Pods of one equivalence class share their compiled filters.

Two more conditions exclude a destination. A cordoned node takes no pods, whatever they tolerate.
And, as in kube-scheduler, a node with a pod whose ephemeral volume has the claim of another pod:
its attached volumes cannot be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from bayplan.autoscaler.clusterstate.taints import to_be_deleted
from bayplan.autoscaler.scaledown.drain import (
    DrainContext,
    DrainOutcome,
    drain_verdict,
    is_daemon,
    is_mirror,
)
from bayplan.autoscaler.scaledown.reasons import BlockingPod, UnremovableNode, UnremovableReason
from bayplan.fit.batches.fill import passing_all
from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.verdicts import refusing_plugins
from bayplan.fit.plugins.base import Filter
from bayplan.fit.requirements.pods import NO_REQUIREMENTS, PodRequirements, belongs_to_another_pod
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord, placed_on
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

FIRST_PART, GROWTH = 32, 8
"""The number of nodes in the first part, and the growth of the next ones."""
FilterKey = tuple[PodSignature, PodRequirements]


@dataclass(frozen=True, slots=True, eq=False)
class _CompiledFilters:
    """The compiled filters of an equivalence class."""

    filters: tuple[Filter, ...]
    attaches: bool
    """Whether the pods have volumes that use attach slots."""


class Destinations:
    """The nodes that pods may be moved to."""

    def __init__(self, snapshot: Snapshot, nodes: Iterable[str]) -> None:
        self._snapshot = snapshot
        self._compiled_filters: dict[FilterKey, _CompiledFilters | None] = {}
        cluster = snapshot.cluster
        by_name = cluster.slots.by_name
        slots = [by_name[name] for name in sorted(nodes) if name in by_name]
        self._slots: SlotArray = np.array(slots, dtype=np.intp)
        self._cordoned = {slot for slot in slots if cluster.node_at(slot).spec.unschedulable}
        self._countable: set[int] = set()
        """Nodes whose volumes can be counted; pods that are moved there do not change that."""
        self._last = 0
        """The index of the last node used."""

    def find(self, record: PodRecord, leaving: int) -> str | None:
        """Return the node that a pod would be moved to; `leaving` is the slot of its own node."""
        compiled = self._filters_for(record)
        if compiled is None:
            return None
        for start, slots in self._parts():
            for at in np.flatnonzero(passing_all(compiled.filters, slots)).tolist():
                slot = int(slots[at])
                if slot != leaving and self._is_open(slot, compiled):
                    self._last = start + at
                    return self._snapshot.cluster.slots.names[slot]
        return None

    def remove(self, slot: int) -> None:
        """Remove a node from the destinations."""
        self._slots = self._slots[self._slots != slot]

    def refused_by(self, record: PodRecord) -> str:
        """Return the plugins that refused a pod."""
        answer = self._snapshot.evaluation(placed_on(record.pod, ""))
        if isinstance(answer, Refusal):
            return answer.plugin
        return ", ".join(sorted(refusing_plugins(answer)))

    def _filters_for(self, record: PodRecord) -> _CompiledFilters | None:
        """Return a pod's compiled filters; None if PreFilter refuses it."""
        pod = record.pod
        if pod.spec.affinity is not None:  # its signature may leave out its own terms
            return self._compile(pod)
        needs = self._snapshot.requirements_of(pod) if pod.spec.volumes else NO_REQUIREMENTS
        key = (record.signature, needs)
        if key not in self._compiled_filters:
            self._compiled_filters[key] = self._compile(pod)
        return self._compiled_filters[key]

    def _compile(self, pod: Pod) -> _CompiledFilters | None:
        filters = self._snapshot.filters(placed_on(pod, ""))
        if isinstance(filters, Refusal):
            return None
        return _CompiledFilters(filters, bool(self._snapshot.requirements_of(pod).attach))

    def _parts(self) -> Iterator[tuple[int, SlotArray]]:
        """Yield all nodes in parts, round-robin from the last one used, with their indexes."""
        size, turn = FIRST_PART, self._last + 1
        for start, end in ((turn, len(self._slots)), (0, min(turn, len(self._slots)))):
            at = start
            while at < end:
                yield at, self._slots[at : min(at + size, end)]
                at, size = at + size, size * GROWTH

    def _is_open(self, slot: int, compiled: _CompiledFilters) -> bool:
        """Whether a node that passes the filters can be used."""
        return slot not in self._cordoned and not self._has_uncountable_volumes(slot, compiled)

    def _has_uncountable_volumes(self, slot: int, compiled: _CompiledFilters) -> bool:
        """Whether a node has limits, and its attached volumes cannot be counted."""
        if not compiled.attaches or slot in self._countable:
            return False
        cluster = self._snapshot.cluster
        if _has_limits(cluster, slot):
            there = _records_at(cluster, slot)
            if any(_uses_foreign_claim(cluster, one) for one in there if one.claims):
                return True
        self._countable.add(slot)
        return False


def _has_limits(cluster: ClusterState, slot: int) -> bool:
    csinode = cluster.csinode_at(slot)
    drivers = csinode.spec.drivers if csinode is not None else ()
    return any(one.allocatable and one.allocatable.count is not None for one in drivers)


def _records_at(cluster: ClusterState, slot: int) -> Iterable[PodRecord]:
    return cluster.pods.by_node.get(cluster.slots.names[slot], {}).values()


def _uses_foreign_claim(cluster: ClusterState, record: PodRecord) -> bool:
    pod = record.pod
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            _, claim = cluster.storage.claim_of(pod, volume)
            if claim is not None and belongs_to_another_pod(volume, claim, pod):
                return True
    return False


@dataclass(frozen=True, slots=True)
class PodMoves:
    """The pods of a node that may be drained."""

    moved: tuple[Pod, ...] = ()
    """Pods that must be moved to other nodes."""
    daemons: tuple[Pod, ...] = ()
    """DaemonSet pods, which are removed with the node."""
    on_completion: tuple[Pod, ...] = ()
    """Pods that the node is kept for until they have finished."""


def pod_moves(pods: Iterable[Pod], drain_context: DrainContext) -> PodMoves | BlockingPod:
    """Sort a node's pods by outcome, or return the first that blocks its removal."""
    by_outcome: dict[DrainOutcome, list[Pod]] = {outcome: [] for outcome in DrainOutcome}
    for pod in pods:
        verdict = drain_verdict(pod, drain_context)
        if verdict.reason is not None:
            return BlockingPod(pod.key, verdict.reason)
        by_outcome[verdict.outcome].append(pod)
    return PodMoves(
        tuple(by_outcome[DrainOutcome.MOVE]),
        tuple(by_outcome[DrainOutcome.DAEMONSET]),
        tuple(by_outcome[DrainOutcome.WAIT]),
    )


def count_nominated(snapshot: Snapshot) -> None:
    """Count every nominated pod on its node, until the caller's fork ends."""
    by_node = snapshot.cluster.nominations.by_node
    settled = sorted((key, node) for node, records in by_node.items() for key in records)
    for key, node in settled:
        if node in snapshot.cluster.slots.by_name:
            snapshot.move(key, node)


Placed = tuple[Pod, str]
"""A pod, and the node that it would be moved to."""


@dataclass(frozen=True, slots=True)
class NodeToBeRemoved:
    """A node that could be removed, and where its pods would be moved."""

    node: str
    moved: tuple[Placed, ...] = ()
    daemons: tuple[Pod, ...] = ()
    on_completion: tuple[Pod, ...] = ()
    risky: bool = False
    """Whether budgets do not allow all its pods to be evicted at once."""

    @property
    def is_empty(self) -> bool:
        """Whether no pod has to be moved."""
        return not self.moved


class RemovalSimulator:
    """Simulates removals, each in the cluster that the ones before it left."""

    def __init__(
        self,
        snapshot: Snapshot,
        drain_context: DrainContext,
        destinations: Destinations,
    ) -> None:
        self._snapshot = snapshot
        self._drain_context = drain_context
        self._destinations = destinations

    def simulate_removal(self, node: str) -> NodeToBeRemoved | UnremovableNode:
        """Remove a node from the fork if that is possible; if not, nothing is changed."""
        moves = self.moves(node)
        if isinstance(moves, BlockingPod):
            return UnremovableNode(node, UnremovableReason.BLOCKED_BY_POD, moves)
        with self._snapshot.fork():
            placed, left = self._place(node, moves.moved)
            if left is not None:
                why = f"pod {left.key} fits no other node ({self._destinations.refused_by(left)})"
                return UnremovableNode(node, UnremovableReason.NO_PLACE_TO_MOVE_PODS, detail=why)
            self._destinations.remove(self._snapshot.cluster.slots.by_name[node])
            self._snapshot.delete(Node, node)
            self._snapshot.commit()
        return self._taken(node, moves, placed)

    def move_drained_pods(self, node: str) -> None:
        """Move the pods of a node that is being drained to other nodes, so that their capacity is
        used; pods that fit none are not counted.
        """
        slot = self._snapshot.cluster.slots.by_name.get(node)
        if slot is None:
            return
        leaving = [one for one in self._snapshot.cluster.records_on(node) if _leaves(one)]
        self._snapshot.uncount_pods(node)
        for record in leaving:
            found = self._destinations.find(record, slot)
            if found is not None:
                self._snapshot.move(record.key, found)

    def moves(self, node: str) -> PodMoves | BlockingPod:
        """Return the moves of a node's pods, or the pod that blocks its removal."""
        records = self._snapshot.cluster.records_on(node)
        return pod_moves([record.pod for record in records], self._drain_context)

    def _place(self, node: str, pods: Iterable[Pod]) -> tuple[tuple[Placed, ...], PodRecord | None]:
        """Move pods of a node to others; return the first that fits none, if any."""
        cluster = self._snapshot.cluster
        records = [cluster.pods.by_key[pod.key] for pod in pods]
        slot = cluster.slots.by_name[node]
        if any(one.honor_taints for record in records for one in record.signature.hard_spread):
            self._snapshot.put(self._tainted(cluster.node_at(slot)))
        self._snapshot.uncount_pods(node)
        placed: list[Placed] = []
        for record in records:
            found = self._destinations.find(record, slot)
            if found is None:
                return tuple(placed), record
            self._snapshot.move(record.key, found)
            placed.append((record.pod, found))
        return tuple(placed), None

    def _taken(self, node: str, moves: PodMoves, placed: tuple[Placed, ...]) -> NodeToBeRemoved:
        risky = not self._drain_context.budgets.spend(moves.moved)
        return NodeToBeRemoved(node, placed, moves.daemons, moves.on_completion, risky)

    def _tainted(self, node: Node) -> Node:
        taints = [*node.spec.taints, to_be_deleted(self._drain_context.now)]
        return replace(node, spec=replace(node.spec, taints=taints))


def _leaves(record: PodRecord) -> bool:
    """Whether a pod of a drained node is moved to another."""
    pod = record.pod
    return not (is_daemon(pod) or is_mirror(pod) or record.terminating)
