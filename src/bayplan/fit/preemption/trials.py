"""Trying one node: pods are taken away and put back for real, and the filters are asked each time.

This is exact whatever the filters look at, and is used where a victim matters to more than the
resources of its node. Nothing that was counted before is missing afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayplan.fit.preemption.found import Found
from bayplan.fit.preemption.importance import Standing, Standings
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import PodRecord

Check = Callable[[str], Refusal | None]
"""Why a node does not take the pod as things are; None if it does."""


def victims_on(
    node: str, lower: list[PodRecord], standings: Standings, check: Check, cluster: Cluster
) -> Found | Refusal:
    """The pods of lower priority that would have to leave a node, or why that would not help."""
    with _without(lower, cluster):
        refusal = check(node)
        if refusal is not None:
            return refusal
        protected, others = standings.by_budget(lower)
        lost = [one for one in protected if not _reprieved(one, node, check, cluster)]
        gone = [one for one in others if not _reprieved(one, node, check, cluster)]
    return Found.of(node, lost, gone)


@contextmanager
def _without(lower: list[PodRecord], cluster: Cluster) -> Iterator[None]:
    """Stop counting pods; at the end all are counted again."""
    try:
        cluster.uncount_all(lower)
        yield
    finally:
        cluster.count_all([one for one in lower if one.slot < 0])


def _reprieved(one: Standing, node: str, check: Check, cluster: Cluster) -> bool:
    """Put a pod back, and leave it there if the waiting pod still fits."""
    cluster.count_all([one.record])
    if check(node) is None:
        return True
    cluster.uncount_all([one.record])
    return False
