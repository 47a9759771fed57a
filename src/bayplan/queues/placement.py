"""Placement of pods of queues on nodes, by the model of what fits.

A pod fits a node *now*, or *later*: once the pods that leave it have left, and beside those that
wait for that. A pod that fits only later is pipelined: the node is kept for it, and it is placed
when it can be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple, Protocol

from bayplan.fit import Assumption, Refusal, Snapshot
from bayplan.fit.evaluation.verdicts import refusers
from bayplan.kube.pods import Pod
from bayplan.queues.members import Member


class Choice(NamedTuple):
    """A node for a pod, and whether the pod fits now."""

    node: str
    now: bool


class Placement(Protocol):
    """The nodes, as decisions about queues see and change them."""

    def choose(self, member: Member) -> Choice | None:
        """Return a node for a pod: one on which it fits now, or else one on which it will."""

    def equivalence_class(self, member: Member) -> Hashable:
        """Return a key that is equal for pods that fit the same nodes."""

    def has_nodes(self) -> bool:
        """Whether there are nodes at all."""

    def helpful(self, member: Member) -> Iterator[str]:
        """Yield the nodes on which a pod might fit if others left them."""

    def pods_on(self, node: str) -> Iterable[str]:
        """Return the keys of the pods on a node."""

    def fits_without(self, member: Member, node: str, victims: Iterable[Member] = ()) -> bool:
        """Whether a node will take a pod once these have left it too."""

    def place(self, member: Member, node: str) -> None:
        """Take a pod as placed."""

    def pipeline(self, member: Member, node: str) -> None:
        """Keep a node for a pod."""

    def withdraw(self, member: Member) -> None:
        """Undo the placing or pipelining of a pod."""

    def evict(self, member: Member) -> None:
        """Take a pod as leaving its node."""

    def spare(self, member: Member) -> None:
        """Undo an eviction."""


class SnapshotPlacement:
    """The snapshot, as decisions about queues see and change it.

    What is placed is assumed in the snapshot; `assumptions` has the tokens.
    """

    def __init__(self, snapshot: Snapshot, leaving: Iterable[Member] = ()) -> None:
        self._snapshot = snapshot
        self.assumptions: dict[str, Assumption] = {}
        self._leaving: defaultdict[str, dict[str, Member]] = defaultdict(dict)
        self._kept: defaultdict[str, dict[str, Member]] = defaultdict(dict)
        """By node the pods that wait for others to leave it."""
        for member in leaving:
            self.evict(member)

    # -- questions -------------------------------------------------------------------------------

    def has_nodes(self) -> bool:
        """Whether there are nodes at all."""
        return len(self._snapshot.cluster.slots) > 0

    def equivalence_class(self, member: Member) -> Hashable:
        """Return a key that is equal for pods that fit the same nodes; one with volumes has its
        own.
        """
        signature = self._snapshot.cluster.signatures.of(member.pod)
        return (signature, member.key) if member.pod.spec.volumes else signature

    def choose(self, member: Member) -> Choice | None:
        """Return a node for a pod: one on which it fits now, or else one on which it will."""
        taken = [n for n, kept in self._kept.items() if kept and not self.fits_without(member, n)]
        node = self._decide(member.pod, taken)
        if node is not None:
            return Choice(node, now=True)
        for name in sorted(node for node, leaving in self._leaving.items() if leaving):
            if self.fits_without(member, name):
                return Choice(name, now=False)
        return None

    def _decide(self, pod: Pod, taken: list[str]) -> str | None:
        """Return the best node on which a pod fits now, without those that are kept for others."""
        node = self._snapshot.decide(pod).node
        if node is None or node not in taken:
            return node
        others = self._snapshot.cluster.slots.by_name.keys() - taken
        return self._snapshot.decide(pod, among=others).node

    def helpful(self, member: Member) -> Iterator[str]:
        """Yield the nodes on which a pod might fit if others left them, by name."""
        evaluation = self._snapshot.evaluation(member.pod)
        if isinstance(evaluation, Refusal):
            return
        evaluation.refresh()
        hopeless: set[int] = set()
        for refuser, slots in refusers(evaluation):
            hopeless.update(slots[refuser.unresolvable(slots)].tolist())
        slots_by_name = self._snapshot.cluster.slots.by_name
        yield from sorted(name for name, slot in slots_by_name.items() if slot not in hopeless)

    def pods_on(self, node: str) -> Iterable[str]:
        """Return the keys of the pods on a node."""
        return list(self._snapshot.cluster.pods.by_node.get(node, ()))

    def fits_without(self, member: Member, node: str, victims: Iterable[Member] = ()) -> bool:
        """Whether a node will take a pod once these have left it too; one that is gone, though pods
        are still leaving it, takes nothing.
        """
        if node not in self._snapshot.cluster.slots.by_name:
            return False
        gone = {**self._leaving.get(node, {}), **{one.key: one for one in victims}}
        kept = self._kept.get(node, {})
        if not gone and not kept:
            return self._snapshot.refusal(member.pod, node) is None
        with self._snapshot.fork():
            for key in gone:
                self._snapshot.delete(Pod, key)
            for other in kept.values():
                self._assume(other, node)
            return self._snapshot.refusal(member.pod, node) is None

    # -- decisions -------------------------------------------------------------------------------

    def place(self, member: Member, node: str) -> None:
        """Take a pod as placed."""
        self.assumptions[member.key] = self._assume(member, node)

    def pipeline(self, member: Member, node: str) -> None:
        """Keep a node for a pod."""
        self._kept[node][member.key] = member

    def withdraw(self, member: Member) -> None:
        """Undo the placing or pipelining of a pod."""
        token = self.assumptions.pop(member.key, None)
        if token is None:
            del self._kept[member.node][member.key]
        else:
            self._snapshot.forget(token)

    def evict(self, member: Member) -> None:
        """Take a pod as leaving its node."""
        if member.node:
            self._leaving[member.node][member.key] = member

    def spare(self, member: Member) -> None:
        """Undo an eviction."""
        self._leaving[member.node].pop(member.key, None)

    def _assume(self, member: Member, node: str) -> Assumption:
        return self._snapshot.assume(member.pod, self._snapshot.decision_on(member.pod, node))
