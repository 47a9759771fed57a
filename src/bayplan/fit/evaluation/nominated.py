"""Nodes for which other pods are nominated: a pod must fit there with them, and without them.

With them, because pods of its own or a higher priority have been promised the place; without them,
because they may end up elsewhere. kube-scheduler asks in this order and takes the first refusal.
Only nodes with nominations are asked twice; where nominated pods matter by what they request alone,
which is most often, all those nodes are worked out together.

The nominated pods that count are the same for all waiting pods of one priority until a nomination,
a node or a resource column changes, and are kept until then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

import numpy as np

from bayplan.fit.evaluation.ranks import Evaluation, best_of
from bayplan.fit.evaluation.verdicts import first_refusal
from bayplan.fit.plugins.base import AmountFilter, Filter, Reads
from bayplan.fit.plugins.registry import BY_NAME
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, IntArray, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod

Priority = Callable[[Pod], int]


class NominatedPods:
    """Nominated pods, by the slot of the node that they are nominated for."""

    __slots__ = ("_requests", "_slots", "by_slot", "huge")

    def __init__(self, by_slot: dict[int, list[PodRecord]]) -> None:
        self.by_slot = by_slot
        self.huge = {
            slot for slot, there in by_slot.items() if any(one.signature.is_huge for one in there)
        }
        """Slots of nodes where what they request cannot just be added up."""
        self._slots: SlotArray = np.array(list(by_slot), dtype=np.intp)
        self._requests: IntArray = np.zeros((len(by_slot), 0), dtype=np.int64)

    def requests(self, cluster: Cluster) -> tuple[SlotArray, IntArray]:
        """The slots, and what the pods of each take together, by resource column."""
        resources = cluster.resources
        for records in self.by_slot.values() if not self._requests.shape[1] else ():
            for record in records:  # one that was never counted may ask for something new
                resources.vector(record.signature)
        if self._requests.shape[1] != len(resources.columns):
            sums = [
                np.add.reduce([resources.vector(one.signature) for one in records])
                for records in self.by_slot.values()
            ]
            self._requests = np.array(sums, dtype=np.int64)
        return self._slots, self._requests


NOBODY = NominatedPods({})


def nominated_pods_for(pod: Pod, cluster: Cluster, priority: Priority) -> NominatedPods:
    """Those that a pod must leave room for."""
    nominations = cluster.nominations
    if not nominations.by_node:
        return NOBODY
    own = priority(pod)
    if nominations.holds(pod.key) or nominations.ranked_by_class:
        return NominatedPods(_by_slot(pod.key, own, cluster, priority))  # it is not in its own way
    key = (own, nominations.version, cluster.node_changes.end)
    known = nominations.kept
    if known is None or known[0] != key:
        known = nominations.kept = (key, NominatedPods(_by_slot("", own, cluster, priority)))
    nominated = known[1]
    return nominated if isinstance(nominated, NominatedPods) else NOBODY


def _by_slot(
    but: str, own: int, cluster: Cluster, priority: Priority
) -> dict[int, list[PodRecord]]:
    found: dict[int, list[PodRecord]] = {}
    for node, records in cluster.nominations.by_node.items():
        slot = cluster.slots.by_name.get(node)
        nominated = [one for key, one in records.items() if key != but and priority(one.pod) >= own]
        if slot is not None and nominated:
            found[slot] = nominated
    return found


Ask = Callable[[Pod], Evaluation | Refusal]
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class NominatedPodsCheck:
    """One pod's question, with those that it must leave room for."""

    def __init__(self, pod: Pod, cluster: Cluster, ask: Ask, priority: Priority) -> None:
        self._pod = pod
        self._cluster = cluster
        self._ask = ask
        self.nominated = nominated_pods_for(pod, cluster, priority)
        # kube-scheduler decides who has a say before it adds the pods that are nominated.
        self._asked = _applying(ask(pod)) if self.nominated.by_slot else ()
        self._plugins = frozenset(one.name for one in self._asked)
        self._need = NOTHING
        self._heeding: list[Filter] = []
        for one in self._asked:
            if isinstance(one, AmountFilter):
                self._need = one.need
            elif one.reads is not Reads.NODE:
                self._heeding.append(one)

    def refusal(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod; None if it does."""
        return self.refusal_beside(slot) or self._refusal(slot)

    def refusal_beside(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod beside those that are nominated for it."""
        if slot not in self.nominated.by_slot:
            return None
        with self.beside(slot):
            return self._refusal(slot, self._plugins)

    def beside(self, slot: int) -> AbstractContextManager[None]:
        """The cluster with those that are nominated for a node counted on it."""
        nominated = self.nominated.by_slot.get(slot, ())
        return self._cluster.counted(nominated, self._cluster.slots.names[slot])

    def refusals_beside(self, slots: Collection[int]) -> dict[int, Refusal]:
        """The nodes of some that nominated pods leave no room on."""
        found = {
            slot: self.refusal_beside(slot) for slot in self.nominated.by_slot if slot in slots
        }
        return {slot: refusal for slot, refusal in found.items() if refusal is not None}

    def taken(self, feasible: BoolArray) -> list[int]:
        """Of nodes that would take the pod, those that nominated pods leave no room on."""
        if not self.nominated.by_slot:
            return []
        slots, requests = self.nominated.requests(self._cluster)
        asked = feasible[slots]
        if not asked.any():
            return []
        involved = self._involved(slots[asked].tolist())
        full = [slot for slot in involved if self.refusal_beside(slot) is not None]
        need = self._need
        short = np.logical_or.reduce(
            self._cluster.resources.free[slots, : len(need)] - requests[:, : len(need)] < need,
            axis=1,
        )
        simple = slots[asked & short].tolist()
        return full + [slot for slot in simple if slot not in involved]

    def best(self, evaluation: Evaluation, own: int | None, rows: Rows) -> int:
        """The slot that the pod itself is nominated for, if it is among some and takes the pod, or
        else the best of those on which nominated pods leave room.
        """
        if (
            own is not None
            and (isinstance(rows, slice) or own in rows)
            and self.refusal(own) is None
        ):
            return own
        evaluation.refresh()
        return best_of(evaluation.ranks_without(self.taken(evaluation.ranks >= 0)), rows)

    def refusing_plugins(self, rows: Rows) -> frozenset[str]:
        """The plugins that refuse some of these nodes beside the pods nominated for them."""
        slots = set(np.arange(self._cluster.slots.capacity)[rows].tolist())
        found = self.refusals_beside(slots).values()
        return frozenset(BY_NAME.keys() & {refusal.plugin for refusal in found})

    def _involved(self, slots: Sequence[int]) -> set[int]:
        """The nodes for which pods are nominated that matter by more than what they request."""
        huge = self.nominated.huge.intersection(slots)
        if not self._heeding and not self._pod.spec.volumes:
            return huge
        nominated = self.nominated.by_slot
        return huge | {slot for slot in slots if not self._is_simple(nominated[slot])}

    def _is_simple(self, nominated: Sequence[PodRecord]) -> bool:
        """Whether these pods matter by what they request alone."""
        if self._pod.spec.volumes and any(record.pod.spec.volumes for record in nominated):
            return False
        return not any(one.heeds(record) for one in self._heeding for record in nominated)

    def _refusal(self, slot: int, plugins: frozenset[str] | None = None) -> Refusal | None:
        evaluation = self._ask(self._pod)
        if isinstance(evaluation, Refusal):
            return evaluation
        return first_refusal(evaluation, slot, plugins)


def _applying(evaluation: Evaluation | Refusal) -> tuple[Filter, ...]:
    """The filters that have a say of the pod as things are."""
    if isinstance(evaluation, Refusal):
        return ()
    return tuple(one for one in evaluation.filters if one.applies)
