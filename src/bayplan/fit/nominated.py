"""Nodes for which other pods are nominated: a pod must fit there with them, and without them.

With them, because pods of its own or a higher priority have been promised the place; without them,
because they may end up elsewhere. kube-scheduler asks in this order and takes the first refusal.
Only nodes with nominations are asked twice; where nominated pods matter by what they request alone,
which is most often, all those nodes are worked out together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

import numpy as np

from bayplan.fit.evaluation import Evaluation, has_say
from bayplan.fit.filters import Filter, Reads
from bayplan.fit.filters.inter_pod_affinity import InterPodAffinity
from bayplan.fit.filters.node_resources_fit import NodeResourcesFit
from bayplan.fit.refusal import Refusal
from bayplan.fit.rivals import rivals_of
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, IntArray
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.verdicts import first_refusal
from bayplan.kube.pods import Pod

Ask = Callable[[Pod], Evaluation | Refusal]
Priority = Callable[[Pod], int]
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class Contest:
    """One pod's question, with those that it must leave room for."""

    def __init__(self, pod: Pod, cluster: Cluster, ask: Ask, priority: Priority) -> None:
        self._pod = pod
        self._cluster = cluster
        self._ask = ask
        self.rivals = rivals_of(pod, cluster, priority)
        # kube-scheduler decides who has a say before it adds the pods that are nominated.
        self._asked = _applying(ask(pod)) if self.rivals.by_slot else ()
        self._plugins = frozenset(one.name for one in self._asked)
        self._need = NOTHING
        self._heeding: list[Filter] = []
        for one in self._asked:
            if isinstance(one, NodeResourcesFit):
                self._need = one.need
            elif one.reads is not Reads.NODE:
                self._heeding.append(one)

    def refusal(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod; None if it does."""
        return self.refusal_beside(slot) or self._refusal(slot)

    def refusal_beside(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod beside those that are nominated for it."""
        if slot not in self.rivals.by_slot:
            return None
        with self.beside(slot):
            return self._refusal(slot, self._plugins)

    def beside(self, slot: int) -> AbstractContextManager[None]:
        """The cluster with those that are nominated for a node counted on it."""
        rivals = self.rivals.by_slot.get(slot, ())
        return self._cluster.counted(rivals, self._cluster.slots.names[slot])

    def refusals_beside(self, slots: Collection[int]) -> dict[int, Refusal]:
        """The nodes of some that nominated pods leave no room on."""
        found = {slot: self.refusal_beside(slot) for slot in self.rivals.by_slot if slot in slots}
        return {slot: refusal for slot, refusal in found.items() if refusal is not None}

    def taken(self, feasible: BoolArray) -> list[int]:
        """Of nodes that would take the pod, those that nominated pods leave no room on."""
        if not self.rivals.by_slot:
            return []
        slots, requests = self.rivals.requests(self._cluster)
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

    def _involved(self, slots: Sequence[int]) -> set[int]:
        """The nodes for which pods are nominated that matter by more than what they request."""
        huge = self.rivals.huge.intersection(slots)
        if not self._heeding and not self._pod.spec.volumes:
            return huge
        rivals = self.rivals.by_slot
        return huge | {slot for slot in slots if not self._is_simple(rivals[slot])}

    def _is_simple(self, rivals: Sequence[PodRecord]) -> bool:
        """Whether these pods matter by what they request alone."""
        if self._pod.spec.volumes and any(rival.pod.spec.volumes for rival in rivals):
            return False
        return not any(one.heeds(rival) for one in self._heeding for rival in rivals)

    def _refusal(self, slot: int, plugins: frozenset[str] | None = None) -> Refusal | None:
        evaluation = self._ask(self._pod)
        if isinstance(evaluation, Refusal):
            return evaluation
        return first_refusal(evaluation, slot, plugins)


def _applying(evaluation: Evaluation | Refusal) -> tuple[Filter, ...]:
    """The filters that have a say of the pod as things are."""
    if isinstance(evaluation, Refusal):
        return ()
    return tuple(
        one
        for one in evaluation.filters
        if (one.applies if isinstance(one, InterPodAffinity) else has_say(one))
    )
