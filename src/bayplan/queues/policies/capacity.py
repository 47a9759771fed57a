"""Capacity: a queue deserves what is written in it (`spec.deserved`)."""

from __future__ import annotations

from bayplan.queues.policies.policy import QueuePolicy
from bayplan.queues.queue_quota import Quota
from bayplan.queues.resources import DUST, Resources


class CapacityPolicy(QueuePolicy):
    """Queues deserve what is written in them, whatever nodes there are."""

    name = "capacity"

    def share(self, deserved: Resources, allocated: Resources) -> float:
        """Return the largest ratio of allocated to deserved; 1 if nothing is deserved."""
        return 1 if deserved.is_nothing else super().share(deserved, allocated)

    def comes_last(self, deserved: Resources) -> bool:
        """Queues that deserve nothing in particular come last."""
        return deserved.is_nothing

    def beyond_share(self, deserved: Resources, used: Resources, request: Resources) -> list[str]:
        """Nodes are not shared: nothing is beyond it."""
        del deserved, used, request
        return []

    def may_reclaim(self, quota: Quota, used: Resources, request: Resources) -> bool:
        """Whether the queue stays within its limit, and deserves one of the resources."""
        if used.over(quota.real_capability, request.nonzero):
            return False
        return any(used[name] < quota.deserved[name] + DUST for name in request.nonzero)

    def may_leave(
        self, quota: Quota, allocated: Resources, victim: Resources, request: Resources
    ) -> bool:
        """Whether the guarantee stays covered, and the queue has more than it deserves of what the
        pod has, or deserves none of it.
        """
        if not _share_a_resource(victim, request) or not quota.guarantee.fits(allocated - victim):
            return False
        if not {*victim.significant} & {*quota.deserved.significant}:
            return True
        names = [name for name in victim.nonzero if _is_deserved(quota.deserved, name)]
        return bool(allocated.over(quota.deserved, names))


def _share_a_resource(a: Resources, b: Resources) -> bool:
    return bool({*a.significant} & {*b.significant} - {"pods"})


def _is_deserved(deserved: Resources, name: str) -> bool:
    if name in {"cpu", "memory"}:
        return deserved[name] >= DUST
    return name in deserved.amounts
