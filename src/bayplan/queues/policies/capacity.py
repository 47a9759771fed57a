"""Capacity: a queue deserves what is written in it (`spec.deserved`)."""

from __future__ import annotations

from bayplan.queues.policies.policy import QueuePolicy
from bayplan.queues.quota import Quota
from bayplan.queues.resources import DUST, Resources


class Capacity(QueuePolicy):
    """Queues deserve what is written in them, whatever nodes there are."""

    name = "capacity"

    def share(self, deserved: Resources, allocated: Resources) -> float:
        """The largest part that it has of what it deserves; 1 if it deserves nothing."""
        return 1 if deserved.is_nothing else super().share(deserved, allocated)

    def comes_last(self, deserved: Resources) -> bool:
        """Queues that deserve nothing in particular come last."""
        return deserved.is_nothing

    def beyond_share(self, deserved: Resources, used: Resources, ask: Resources) -> list[str]:
        """Nodes are not shared: nothing is beyond it."""
        del deserved, used, ask
        return []

    def may_reclaim(self, quota: Quota, used: Resources, request: Resources) -> bool:
        """Whether the queue stays within its limit, and deserves one of the resources."""
        if used.over(quota.real_capability, request.asked):
            return False
        return any(used[name] < quota.deserved[name] + DUST for name in request.asked)

    def may_leave(
        self, quota: Quota, allocated: Resources, victim: Resources, ask: Resources
    ) -> bool:
        """Whether the guarantee stays covered, and the queue has more than it deserves of what the
        pod has, or deserves none of it.
        """
        if not _share_a_resource(victim, ask) or not quota.guarantee.fits(allocated - victim):
            return False
        if not {*victim.weighty} & {*quota.deserved.weighty}:
            return True
        names = [name for name in victim.asked if _is_deserved(quota.deserved, name)]
        return bool(allocated.over(quota.deserved, names))


def _share_a_resource(a: Resources, b: Resources) -> bool:
    return bool({*a.weighty} & {*b.weighty} - {"pods"})


def _is_deserved(deserved: Resources, name: str) -> bool:
    if name in {"cpu", "memory"}:
        return deserved[name] >= DUST
    return name in deserved.amounts
