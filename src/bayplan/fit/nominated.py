"""Nodes for which other pods are nominated: a pod must fit there with them, and without them.

With them, because pods of its own or a higher priority have been promised the place; without them,
because they may end up elsewhere. kube-scheduler asks in this order and takes the first refusal.
Only nodes with nominations are asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from bayplan.fit.evaluation import Evaluation
from bayplan.fit.filters.inter_pod_affinity import InterPodAffinity
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.verdicts import first_refusal
from bayplan.kube.pods import Pod

Rivals = Mapping[int, list[PodRecord]]
Ask = Callable[[Pod], Evaluation | Refusal]
Priority = Callable[[Pod], int]


class Contest:
    """One pod's question, with those that it must leave room for."""

    def __init__(self, pod: Pod, cluster: Cluster, ask: Ask, priority: Priority) -> None:
        self._pod = pod
        self._cluster = cluster
        self._ask = ask
        self.rivals = _rivals(pod, cluster, priority)
        """By slot, the pods of no lower priority that are nominated for the node."""
        # kube-scheduler decides before it adds nominated pods whether affinity matters at all.
        self._heeds_affinity = bool(self.rivals) and _affinity_applies(ask(pod))

    def refusal(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod; None if it does."""
        return self.refusal_beside(slot) or self._refusal(slot)

    def refusal_beside(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod beside those that are nominated for it."""
        rivals = self.rivals.get(slot)
        if not rivals:
            return None
        with self._cluster.counted(rivals, self._cluster.slots.names[slot]):
            return self._refusal(slot, affinity=self._heeds_affinity)

    def refusals_beside(self, slots: Collection[int]) -> dict[int, Refusal]:
        """The nodes of some that nominated pods leave no room on."""
        found = {slot: self.refusal_beside(slot) for slot in self.rivals if slot in slots}
        return {slot: refusal for slot, refusal in found.items() if refusal is not None}

    def _refusal(self, slot: int, *, affinity: bool = True) -> Refusal | None:
        evaluation = self._ask(self._pod)
        if isinstance(evaluation, Refusal):
            return evaluation
        return first_refusal(evaluation, slot, affinity=affinity)


def _rivals(pod: Pod, cluster: Cluster, priority: Priority) -> Rivals:
    rivals: dict[int, list[PodRecord]] = {}
    own = priority(pod)
    for node, records in cluster.nominations.by_node.items():
        slot = cluster.slots.by_name.get(node)
        there = [r for r in records.values() if r.pod.key != pod.key and priority(r.pod) >= own]
        if slot is not None and there:
            rivals[slot] = there
    return rivals


def _affinity_applies(evaluation: Evaluation | Refusal) -> bool:
    return not isinstance(evaluation, Refusal) and any(
        one.applies for one in evaluation.filters if isinstance(one, InterPodAffinity)
    )
