"""Nodes for which other pods are nominated: a pod must fit there with them, and without them.

With them, because pods of its own or a higher priority have been promised the place; without them,
because they may end up elsewhere. kube-scheduler asks in this order and takes the first refusal.
Only nodes with nominations are asked twice; where nominated pods matter by what they request alone,
which is most often, all those nodes are worked out together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from bayplan.fit.evaluation import Evaluation, has_say
from bayplan.fit.filters import Filter, Reads
from bayplan.fit.filters.inter_pod_affinity import InterPodAffinity
from bayplan.fit.filters.node_resources_fit import NodeResourcesFit
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
        # kube-scheduler decides who has a say before it adds the pods that are nominated.
        self._asked = _applying(ask(pod)) if self.rivals else ()
        self._plugins = frozenset(one.name for one in self._asked)

    def refusal(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod; None if it does."""
        return self.refusal_beside(slot) or self._refusal(slot)

    def refusal_beside(self, slot: int) -> Refusal | None:
        """Why a node does not take the pod beside those that are nominated for it."""
        rivals = self.rivals.get(slot)
        if not rivals:
            return None
        with self._cluster.counted(rivals, self._cluster.slots.names[slot]):
            return self._refusal(slot, self._plugins)

    def refusals_beside(self, slots: Collection[int]) -> dict[int, Refusal]:
        """The nodes of some that nominated pods leave no room on."""
        found = {slot: self.refusal_beside(slot) for slot in self.rivals if slot in slots}
        return {slot: refusal for slot, refusal in found.items() if refusal is not None}

    def taken(self, slots: Collection[int]) -> list[int]:
        """Of nodes that would take the pod, those that nominated pods leave no room on."""
        asked = [slot for slot in self.rivals if slot in slots]
        simple = [slot for slot in asked if self._is_simple(self.rivals[slot])]
        others = [slot for slot in asked if slot not in simple]
        full = [slot for slot in others if self.refusal_beside(slot) is not None]
        return full + (self._short(simple) if simple else [])

    def _is_simple(self, rivals: Sequence[PodRecord]) -> bool:
        """Whether these pods matter by what they request alone."""
        if self._pod.spec.volumes and any(rival.pod.spec.volumes for rival in rivals):
            return False
        return not any(
            one.reads is not Reads.NODE
            and not isinstance(one, NodeResourcesFit)
            and any(one.heeds(rival) for rival in rivals)
            for one in self._asked
        )

    def _short(self, slots: list[int]) -> list[int]:
        """The nodes that have too little left once these pods are there."""
        resources = self._cluster.resources
        fit = next((one for one in self._asked if isinstance(one, NodeResourcesFit)), None)
        if fit is None:
            return []
        width = len(fit.need)
        take = [
            sum(resources.vector(rival.shape)[:width] for rival in self.rivals[slot])
            for slot in slots
        ]
        left = resources.free[slots, :width] - np.array(take)
        short = np.logical_or.reduce(left < fit.need, axis=1)
        return [slot for slot, is_short in zip(slots, short.tolist(), strict=True) if is_short]

    def _refusal(self, slot: int, plugins: frozenset[str] | None = None) -> Refusal | None:
        evaluation = self._ask(self._pod)
        if isinstance(evaluation, Refusal):
            return evaluation
        return first_refusal(evaluation, slot, plugins)


def _rivals(pod: Pod, cluster: Cluster, priority: Priority) -> Rivals:
    rivals: dict[int, list[PodRecord]] = {}
    own = priority(pod)
    for node, records in cluster.nominations.by_node.items():
        slot = cluster.slots.by_name.get(node)
        there = [r for r in records.values() if r.key != pod.key and priority(r.pod) >= own]
        if slot is not None and there:
            rivals[slot] = there
    return rivals


def _applying(evaluation: Evaluation | Refusal) -> tuple[Filter, ...]:
    """The filters that have a say of the pod as things are."""
    if isinstance(evaluation, Refusal):
        return ()
    return tuple(
        one
        for one in evaluation.filters
        if (one.applies if isinstance(one, InterPodAffinity) else has_say(one))
    )
