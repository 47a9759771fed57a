"""Trying to take nodes away, one after the other, in a fork that the caller keeps open.

A node that can go takes its pods' places and its budgets with it, so that the next one is tried in
the cluster without it. While its own pods look for places, it stays as an empty node that nobody is
put on, tainted as it would be: spreading still counts it as a domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.autoscaler.scaledown.destinations import Destinations
from bayplan.autoscaler.scaledown.drain import Scene
from bayplan.autoscaler.scaledown.drain.pods import is_daemon, is_mirror
from bayplan.autoscaler.scaledown.moves import Moves, moves_of
from bayplan.autoscaler.scaledown.reasons import BlockingPod, Unremovable, UnremovableReason
from bayplan.autoscaler.scaledown.taints import to_be_deleted
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

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


class Removals:
    """Nodes taken away for a try, each from what the ones before it left."""

    def __init__(
        self,
        snapshot: Snapshot,
        scene: Scene,
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

    def moves(self, node: str) -> Moves | BlockingPod:
        """What becomes of a node's pods."""
        records = self._snapshot.cluster.records_on(node)
        return moves_of([record.pod for record in records], self._scene)

    def _place(self, node: str, pods: Iterable[Pod]) -> tuple[tuple[Placed, ...], PodRecord | None]:
        """Put pods of a node onto others; returns the first, if any, that has nowhere to go."""
        cluster = self._snapshot.cluster
        records = [cluster.pods.by_key[pod.key] for pod in pods]
        slot = cluster.slots.by_name[node]
        if any(one.honor_taints for record in records for one in record.shape.hard_spread):
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

    def _taken(self, node: str, moves: Moves, placed: tuple[Placed, ...]) -> Removable:
        risky = not self._scene.budgets.spend(moves.moved)
        return Removable(node, placed, moves.daemons, moves.on_completion, risky)

    def _tainted(self, node: Node) -> Node:
        taints = [*node.spec.taints, to_be_deleted(self._scene.now)]
        return replace(node, spec=replace(node.spec, taints=taints))


def _leaves(record: PodRecord) -> bool:
    """Whether a pod of a node that is drained needs another place."""
    pod = record.pod
    return not (is_daemon(pod) or is_mirror(pod) or record.terminating)
