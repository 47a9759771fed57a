"""The nominated pods that a waiting pod must leave room for: those of its own or a higher priority.

They are the same for all waiting pods of one priority until a nomination, a node or what a resource
column is changes, and are kept until then.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import IntArray, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod

Priority = Callable[[Pod], int]


class Rivals:
    """Nominated pods, by the slot of the node that they are nominated for."""

    __slots__ = ("_requests", "_slots", "by_slot", "huge")

    def __init__(self, by_slot: dict[int, list[PodRecord]]) -> None:
        self.by_slot = by_slot
        self.huge = {
            slot for slot, there in by_slot.items() if any(one.shape.is_huge for one in there)
        }
        """Slots of nodes where what they request cannot just be added up."""
        self._slots: SlotArray = np.array(list(by_slot), dtype=np.intp)
        self._requests: IntArray = np.zeros((len(by_slot), 0), dtype=np.int64)

    def requests(self, cluster: Cluster) -> tuple[SlotArray, IntArray]:
        """The slots, and what the pods of each take together, by resource column."""
        resources = cluster.resources
        for records in self.by_slot.values() if not self._requests.shape[1] else ():
            for record in records:  # one that was never counted may ask for something new
                resources.vector(record.shape)
        if self._requests.shape[1] != len(resources.columns):
            sums = [
                np.add.reduce([resources.vector(one.shape) for one in records])
                for records in self.by_slot.values()
            ]
            self._requests = np.array(sums, dtype=np.int64)
        return self._slots, self._requests


NOBODY = Rivals({})


def rivals_of(pod: Pod, cluster: Cluster, priority: Priority) -> Rivals:
    """Those that a pod must leave room for."""
    nominations = cluster.nominations
    if not nominations.by_node:
        return NOBODY
    own = priority(pod)
    if nominations.holds(pod.key) or nominations.ranked_by_class:
        return Rivals(_by_slot(pod.key, own, cluster, priority))  # it is not in its own way
    key = (own, nominations.version, cluster.node_changes.end)
    known = nominations.kept
    if known is None or known[0] != key:
        known = nominations.kept = (key, Rivals(_by_slot("", own, cluster, priority)))
    rivals = known[1]
    return rivals if isinstance(rivals, Rivals) else NOBODY


def _by_slot(
    but: str, own: int, cluster: Cluster, priority: Priority
) -> dict[int, list[PodRecord]]:
    found: dict[int, list[PodRecord]] = {}
    for node, records in cluster.nominations.by_node.items():
        slot = cluster.slots.by_name.get(node)
        rivals = [one for key, one in records.items() if key != but and priority(one.pod) >= own]
        if slot is not None and rivals:
            found[slot] = rivals
    return found
