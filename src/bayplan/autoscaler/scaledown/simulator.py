"""Removal of nodes, simulated one after the other in a fork that the caller keeps open.

A node that can go takes its pods' places and its budgets with it, so that the next one is tried in
the cluster without it. While its own pods look for places, it stays as an empty node that no pod is
put on, tainted as it would be: spreading still counts it as a domain.

The search for places goes round over the nodes in the order of their names, as Cluster Autoscaler's
does: it begins after the node that was used last, so that full nodes are not asked first every
time. Nodes are asked some at a time, few at first and then more and more: where there is room, a
pod costs a look at a few nodes, and where there is none, not much more than one look at all of
them. Pods that are alike share their compiled filters.

Two more things keep pods off a node than would keep them off elsewhere. A cordoned node takes no
more pods, whatever they tolerate. And, as in kube-scheduler, a pod there whose ephemeral volume has
the claim of another pod: what such a node has attached cannot be counted.
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
from bayplan.autoscaler.scaledown.reasons import BlockingPod, Unremovable, UnremovableReason
from bayplan.fit.batches.placing import passing_all
from bayplan.fit.evaluation.verdicts import refusing_plugins
from bayplan.fit.plugins.base import Filter
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.pods import NO_REQUIREMENTS, PodRequirements, is_anothers
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord, placed_on
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

FEW, GROWTH = 32, 8
"""How many nodes are asked at first, and how many times more each time after."""
Asked = tuple[PodSignature, PodRequirements]


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What pods that are alike are asked."""

    filters: tuple[Filter, ...]
    attaches: bool
    """Whether they have volumes that take places."""


class Destinations:
    """The nodes that pods may be moved to."""

    def __init__(self, snapshot: Snapshot, nodes: Iterable[str]) -> None:
        self._snapshot = snapshot
        self._questions: dict[Asked, _Question | None] = {}
        cluster = snapshot.cluster
        by_name = cluster.slots.by_name
        slots = [by_name[name] for name in sorted(nodes) if name in by_name]
        self._slots: SlotArray = np.array(slots, dtype=np.intp)
        self._cordoned = {slot for slot in slots if cluster.node_at(slot).spec.unschedulable}
        self._countable: set[int] = set()
        """Nodes of which it is known; whoever is moved there has no claim of somebody else's."""
        self._last = 0
        """The place in that order of the node that was used last."""

    def find(self, record: PodRecord, leaving: int) -> str | None:
        """The node that a pod would be moved to; `leaving` is the slot of its own."""
        question = self._question(record)
        if question is None:
            return None
        for start, slots in self._parts():
            for at in np.flatnonzero(passing_all(question.filters, slots)).tolist():
                slot = int(slots[at])
                if slot != leaving and self._is_open(slot, question):
                    self._last = start + at
                    return self._snapshot.cluster.slots.names[slot]
        return None

    def forget(self, slot: int) -> None:
        """A node is gone."""
        self._slots = self._slots[self._slots != slot]

    def why_not(self, record: PodRecord) -> str:
        """Who refused a pod that found no place."""
        answer = self._snapshot.evaluation(placed_on(record.pod, ""))
        if isinstance(answer, Refusal):
            return answer.plugin
        return ", ".join(sorted(refusing_plugins(answer)))

    def _question(self, record: PodRecord) -> _Question | None:
        """What a pod is asked; None if it is refused before any node is looked at."""
        pod = record.pod
        if pod.spec.affinity is not None:  # what it counts as may leave out what it asks for
            return self._compiled(pod)
        needs = self._snapshot.requirements_of(pod) if pod.spec.volumes else NO_REQUIREMENTS
        asked = (record.signature, needs)
        if asked not in self._questions:
            self._questions[asked] = self._compiled(pod)
        return self._questions[asked]

    def _compiled(self, pod: Pod) -> _Question | None:
        filters = self._snapshot.filters(placed_on(pod, ""))
        if isinstance(filters, Refusal):
            return None
        return _Question(filters, bool(self._snapshot.requirements_of(pod).attach))

    def _parts(self) -> Iterator[tuple[int, SlotArray]]:
        """All nodes, going round from the one after the last, a part at a time; each part with
        its place in the order.
        """
        size, turn = FEW, self._last + 1
        for start, end in ((turn, len(self._slots)), (0, min(turn, len(self._slots)))):
            at = start
            while at < end:
                yield at, self._slots[at : min(at + size, end)]
                at, size = at + size, size * GROWTH

    def _is_open(self, slot: int, question: _Question) -> bool:
        """Whether nothing but filters keeps pods off a node."""
        return slot not in self._cordoned and not self._cannot_be_counted(slot, question)

    def _cannot_be_counted(self, slot: int, question: _Question) -> bool:
        """Whether nobody can say if a node with a limit has a place for the pod's volumes."""
        if not question.attaches or slot in self._countable:
            return False
        cluster = self._snapshot.cluster
        if _has_limits(cluster, slot):
            there = _records_at(cluster, slot)
            if any(_uses_foreign_claim(cluster, one) for one in there if one.claims):
                return True
        self._countable.add(slot)
        return False


def _has_limits(cluster: Cluster, slot: int) -> bool:
    csinode = cluster.csinode_at(slot)
    drivers = csinode.spec.drivers if csinode is not None else ()
    return any(one.allocatable and one.allocatable.count is not None for one in drivers)


def _records_at(cluster: Cluster, slot: int) -> Iterable[PodRecord]:
    return cluster.pods.by_node.get(cluster.slots.names[slot], {}).values()


def _uses_foreign_claim(cluster: Cluster, record: PodRecord) -> bool:
    pod = record.pod
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            _, claim = cluster.storage.claim_of(pod, volume)
            if claim is not None and is_anothers(volume, claim, pod):
                return True
    return False


@dataclass(frozen=True, slots=True)
class PodMoves:
    """The pods of a node that may be drained."""

    moved: tuple[Pod, ...] = ()
    """They need a place elsewhere."""
    daemons: tuple[Pod, ...] = ()
    """They go with the node."""
    on_completion: tuple[Pod, ...] = ()
    """The node is kept until they have ended."""


def pod_moves(pods: Iterable[Pod], scene: DrainContext) -> PodMoves | BlockingPod:
    """What becomes of a node's pods, or the first that keeps it."""
    sorted_out: dict[DrainOutcome, list[Pod]] = {outcome: [] for outcome in DrainOutcome}
    for pod in pods:
        said = drain_verdict(pod, scene)
        if said.reason is not None:
            return BlockingPod(pod.key, said.reason)
        sorted_out[said.outcome].append(pod)
    return PodMoves(
        tuple(sorted_out[DrainOutcome.MOVE]),
        tuple(sorted_out[DrainOutcome.DAEMONSET]),
        tuple(sorted_out[DrainOutcome.WAIT]),
    )


def settle_nominated(snapshot: Snapshot) -> None:
    """Count every nominated pod on its node, until the caller's fork ends."""
    by_node = snapshot.cluster.nominations.by_node
    settled = sorted((key, node) for node, records in by_node.items() for key in records)
    for key, node in settled:
        if node in snapshot.cluster.slots.by_name:
            snapshot.move(key, node)


Placed = tuple[Pod, str]
"""A pod, and the node that it would be moved to."""


@dataclass(frozen=True, slots=True)
class Removable:
    """A node that could go, and what that would mean."""

    node: str
    moved: tuple[Placed, ...] = ()
    daemons: tuple[Pod, ...] = ()
    on_completion: tuple[Pod, ...] = ()
    risky: bool = False
    """Whether budgets do not allow all its pods to go at once."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be moved."""
        return not self.moved


class RemovalSimulator:
    """Nodes taken away for a try, each from what the ones before it left."""

    def __init__(
        self,
        snapshot: Snapshot,
        scene: DrainContext,
        destinations: Destinations,
    ) -> None:
        self._snapshot = snapshot
        self._scene = scene
        self._destinations = destinations

    def take_away(self, node: str) -> Removable | Unremovable:
        """Take a node away if that is possible; if not, nothing is changed."""
        moves = self.moves(node)
        if isinstance(moves, BlockingPod):
            return Unremovable(node, UnremovableReason.BLOCKED_BY_POD, moves)
        with self._snapshot.fork():
            placed, left = self._place(node, moves.moved)
            if left is not None:
                why = f"no node has room for {left.key} ({self._destinations.why_not(left)})"
                return Unremovable(node, UnremovableReason.NO_PLACE_TO_MOVE_PODS, detail=why)
            self._destinations.forget(self._snapshot.cluster.slots.by_name[node])
            self._snapshot.delete(Node, node)
            self._snapshot.commit()
        return self._taken(node, moves, placed)

    def make_room_for(self, node: str) -> None:
        """Count the pods of a node that is being drained where they may go, so that their places
        are taken; whoever has none now is counted nowhere.
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
        """What becomes of a node's pods."""
        records = self._snapshot.cluster.records_on(node)
        return pod_moves([record.pod for record in records], self._scene)

    def _place(self, node: str, pods: Iterable[Pod]) -> tuple[tuple[Placed, ...], PodRecord | None]:
        """Put pods of a node onto others; returns the first, if any, that has nowhere to go."""
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

    def _taken(self, node: str, moves: PodMoves, placed: tuple[Placed, ...]) -> Removable:
        risky = not self._scene.budgets.spend(moves.moved)
        return Removable(node, placed, moves.daemons, moves.on_completion, risky)

    def _tainted(self, node: Node) -> Node:
        taints = [*node.spec.taints, to_be_deleted(self._scene.now)]
        return replace(node, spec=replace(node.spec, taints=taints))


def _leaves(record: PodRecord) -> bool:
    """Whether a pod of a node that is drained needs another place."""
    pod = record.pod
    return not (is_daemon(pod) or is_mirror(pod) or record.terminating)
