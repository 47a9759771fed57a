"""Proportion: a queue deserves a part of the nodes that there are, by its weight.

The total is given out in rounds, until no queue wants more of it.

In each round every queue that still wants something is offered its part, by weight, of what is
left. It takes no more than it can really have and no more than is asked of it, but never less than
its guarantee. A queue that has all that is requested of it, or could not take more, is offered no
more. What was not taken is left for the next round.

All queues of a round are computed at once, a row each, with a column for every resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.kube.resources import PODS
from bayplan.queues.policies.policy import QueueDemand, QueuePolicy
from bayplan.queues.queue_quota import Quota
from bayplan.queues.resources import DUST, Resources

Floats = NDArray[np.float64]
_MOST_TURNS = 1000
"""Turns end by themselves long before: each makes a queue content, or leaves less than dust."""


class ProportionPolicy(QueuePolicy):
    """Queues deserve a part of the nodes by weight, as far as they have something to ask for."""

    name = "proportion"
    shares_nodes = True

    def deserved(
        self, demands: Mapping[str, QueueDemand], total: Resources
    ) -> Mapping[str, Resources]:
        """Return what each queue deserves of a total."""
        return deserved_by_weight(demands, total)

    def comes_last(self, deserved: Resources) -> bool:
        """Return False: no queue comes last under this policy."""
        del deserved
        return False

    def beyond_share(self, deserved: Resources, used: Resources, request: Resources) -> list[str]:
        """Return the requested resources of which the queue would have more than it deserves."""
        return (request + used).over(deserved, request.nonzero)

    def may_reclaim(self, quota: Quota, used: Resources, request: Resources) -> bool:
        """Whether the queue has no more than it deserves of any resource that the pod requests."""
        return not used.over(quota.deserved, request.nonzero)

    def may_leave(
        self, quota: Quota, allocated: Resources, victim: Resources, request: Resources
    ) -> bool:
        """Whether the queue has more than it deserves of any resource."""
        del victim, request
        return not allocated.fits(quota.deserved)


def deserved_by_weight(
    demands: Mapping[str, QueueDemand], total: Resources
) -> dict[str, Resources]:
    """Return what each queue deserves of a total."""
    names = sorted({*total, *(n for c in demands.values() for n in (*c.request, *c.guarantee))})
    poured = _Pouring(list(demands.values()), total, names).pour()
    return {
        queue: Resources({n: a for n, a in zip(names, row, strict=True) if a})
        for queue, row in zip(demands, poured.tolist(), strict=True)
    }


class _Pouring:
    """A total that is shared among queues by weight."""

    def __init__(
        self, demands: Sequence[QueueDemand], total: Resources, names: Sequence[str]
    ) -> None:
        self._weights = np.array([demand.weight for demand in demands], dtype=np.float64)
        self._request = _rows((demand.request for demand in demands), names)
        limits = _rows((demand.real_capability for demand in demands), names)
        self._most = np.minimum(limits, self._request)
        self._least = _rows((demand.guarantee for demand in demands), names)
        self._remaining = _rows([total], names)[0]
        self._counts = np.array([name != PODS for name in names], dtype=np.bool_)
        """The columns of which something must be left for another turn."""

    def pour(self) -> Floats:
        """Return the amounts of each queue."""
        deserved = np.zeros_like(self._request)
        wanting = np.arange(len(deserved))
        for _ in range(_MOST_TURNS):
            if not len(wanting):
                break
            before = deserved[wanting]
            now = deserved[wanting] = self._offered(wanting, before)
            left = np.maximum(self._remaining - (now - before).sum(axis=0), 0)
            full = (self._request[wanting] < now + DUST).all(axis=1)
            wanting = wanting[~(full | (now == before).all(axis=1))]
            if (left[self._counts] < DUST).all() or (left == self._remaining).all():
                break
            self._remaining = left
        return deserved

    def _offered(self, wanting: NDArray[np.intp], had: Floats) -> Floats:
        weights = self._weights[wanting]
        parts = (weights / weights.sum())[:, None]
        taken = np.minimum(had + self._remaining * parts, self._most[wanting])
        offered: Floats = np.maximum(taken, self._least[wanting])
        return offered


def _rows(amounts: Iterable[Resources], names: Sequence[str]) -> Floats:
    rows = [[one[name] for name in names] for one in amounts]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
