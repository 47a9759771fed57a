"""Nodes for which other pods are nominated: a pod must fit there with them, and without them.

With them, because pods of its own or a higher priority have been promised the node; without them,
because they may end up elsewhere. kube-scheduler evaluates in this order and takes the first
refusal. Only nodes with nominations are evaluated twice; where nominated pods matter by what they
request only, which is most frequent, all those nodes are computed together.

The nominated pods that count are the same for all waiting pods of one priority until a nomination,
a node or a resource column changes, and are kept until then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.ranks import Evaluation, best_of
from bayplan.fit.evaluation.verdicts import first_refusal
from bayplan.fit.plugins.base import Filter, ReadScope
from bayplan.fit.plugins.registry import BY_NAME
from bayplan.fit.state.cluster import ClusterState
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

    def requests(self, cluster: ClusterState) -> tuple[SlotArray, IntArray]:
        """Return the slots, and what the pods of each request together, by resource column."""
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


NO_NOMINATED_PODS = NominatedPods({})


def nominated_pods_for(pod: Pod, cluster: ClusterState, priority: Priority) -> NominatedPods:
    """Return the nominated pods that count for a pod: of its own or a higher priority."""
    nominations = cluster.nominations
    if not nominations.by_node:
        return NO_NOMINATED_PODS
    own = priority(pod)
    if nominations.holds(pod.key) or nominations.ranked_by_class:
        return NominatedPods(_by_slot(pod.key, own, cluster, priority))  # without the pod itself
    key = (own, nominations.version, cluster.node_changes.end)
    known = nominations.kept
    if known is None or known[0] != key:
        known = nominations.kept = (key, NominatedPods(_by_slot("", own, cluster, priority)))
    nominated = known[1]
    return nominated if isinstance(nominated, NominatedPods) else NO_NOMINATED_PODS


def _by_slot(
    but: str, own: int, cluster: ClusterState, priority: Priority
) -> dict[int, list[PodRecord]]:
    found: dict[int, list[PodRecord]] = {}
    for node, records in cluster.nominations.by_node.items():
        slot = cluster.slots.by_name.get(node)
        nominated = [one for key, one in records.items() if key != but and priority(one.pod) >= own]
        if slot is not None and nominated:
            found[slot] = nominated
    return found


Evaluate = Callable[[Pod], Evaluation | Refusal]
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class NominatedPodsCheck:
    """One pod's request, with the nominated pods that count for it."""

    def __init__(self, pod: Pod, cluster: ClusterState, ask: Evaluate, priority: Priority) -> None:
        self._pod = pod
        self._cluster = cluster
        self._ask = ask
        self.nominated = nominated_pods_for(pod, cluster, priority)
        # kube-scheduler decides which filters run before it adds the nominated pods.
        self._asked = _applying(ask(pod)) if self.nominated.by_slot else ()
        self._plugins = frozenset(one.name for one in self._asked)
        self._need = NOTHING
        self._sensitive: list[Filter] = []
        for one in self._asked:
            if one.by_amounts is not None:
                self._need = one.by_amounts.need
            elif one.reads is not ReadScope.NODE:
                self._sensitive.append(one)

    def refusal(self, slot: int) -> Refusal | None:
        """Return a node's refusal, with and without nominated pods; None if the pod fits."""
        return self.refusal_with_nominated(slot) or self._refusal(slot)

    def refusal_with_nominated(self, slot: int) -> Refusal | None:
        """Return a node's refusal with the pods that are nominated for it."""
        if slot not in self.nominated.by_slot:
            return None
        with self.with_nominated(slot):
            return self._refusal(slot, self._plugins)

    def with_nominated(self, slot: int) -> AbstractContextManager[None]:
        """Count the pods that are nominated for a node on it."""
        nominated = self.nominated.by_slot.get(slot, ())
        return self._cluster.counted(nominated, self._cluster.slots.names[slot])

    def refusals_with_nominated(self, slots: Collection[int]) -> dict[int, Refusal]:
        """Return, of some nodes, the refusals because of nominated pods."""
        found = {
            slot: self.refusal_with_nominated(slot)
            for slot in self.nominated.by_slot
            if slot in slots
        }
        return {slot: refusal for slot, refusal in found.items() if refusal is not None}

    def taken(self, feasible: BoolArray) -> list[int]:
        """Return, of feasible nodes, those that refuse the pod because of nominated pods."""
        if not self.nominated.by_slot:
            return []
        slots, requests = self.nominated.requests(self._cluster)
        asked = feasible[slots]
        if not asked.any():
            return []
        involved = self._involved(slots[asked].tolist())
        full = [slot for slot in involved if self.refusal_with_nominated(slot) is not None]
        need = self._need
        short = np.logical_or.reduce(
            self._cluster.resources.free[slots, : len(need)] - requests[:, : len(need)] < need,
            axis=1,
        )
        simple = slots[asked & short].tolist()
        return full + [slot for slot in simple if slot not in involved]

    def best(self, evaluation: Evaluation, own: int | None, rows: Rows) -> int:
        """Return the slot that the pod itself is nominated for, if it is among some and fits, or
        else the best of those that fit with nominated pods.
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
        """Return the plugins that refuse some of these nodes because of nominated pods."""
        slots = set(np.arange(self._cluster.slots.capacity)[rows].tolist())
        found = self.refusals_with_nominated(slots).values()
        return frozenset(BY_NAME.keys() & {refusal.plugin for refusal in found})

    def _involved(self, slots: Sequence[int]) -> set[int]:
        """Return the nodes whose nominated pods matter by more than what they request."""
        huge = self.nominated.huge.intersection(slots)
        if not self._sensitive and not self._pod.spec.volumes:
            return huge
        nominated = self.nominated.by_slot
        return huge | {slot for slot in slots if not self._is_simple(nominated[slot])}

    def _is_simple(self, nominated: Sequence[PodRecord]) -> bool:
        """Whether these pods matter by what they request alone."""
        if self._pod.spec.volumes and any(record.pod.spec.volumes for record in nominated):
            return False
        return not any(
            one.is_affected_by(record) for one in self._sensitive for record in nominated
        )

    def _refusal(self, slot: int, plugins: frozenset[str] | None = None) -> Refusal | None:
        evaluation = self._ask(self._pod)
        if isinstance(evaluation, Refusal):
            return evaluation
        return first_refusal(evaluation, slot, plugins)


def _applying(evaluation: Evaluation | Refusal) -> tuple[Filter, ...]:
    """Return the filters that kube-scheduler runs for the pod now."""
    if isinstance(evaluation, Refusal):
        return ()
    return tuple(one for one in evaluation.filters if one.applies)
