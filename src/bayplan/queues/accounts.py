"""The sums of all queues of one tree: what each has, what it deserves, and its share of that.

A change of one group moves the sums of its queue and of those above it, and drops what was reckoned
from them; nothing else is looked at. What queues deserve by weight hangs on what is asked of all of
them, and is reckoned anew when that has changed and somebody wants to know.

| quantity | what it is |
|---|---|
| allocated | what pods with a node request; those that are being deleted no longer count |
| request | allocated, and what pods without a node request |
| inqueue | what admitted groups need to start and have not got yet |
| elastic | what groups have beyond what they need to start |
| reserved | what pods request that were let through by quota and have no node yet |

Each is a sum over the pods and groups of a queue and of all queues below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import msgspec

from bayplan.queues.policies import Claim
from bayplan.queues.quota import Quota
from bayplan.queues.resources import NOTHING, UNLIMITED, Resources
from bayplan.queues.tree import QueueTree


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The five sums of a queue, or of one group."""

    allocated: Resources = NOTHING
    request: Resources = NOTHING
    inqueue: Resources = NOTHING
    elastic: Resources = NOTHING
    reserved: Resources = NOTHING

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.allocated + other.allocated,
            self.request + other.request,
            self.inqueue + other.inqueue,
            self.elastic + other.elastic,
            self.reserved + other.reserved,
        )

    def since(self, old: Usage) -> Usage:
        """What has been added to it, or taken away, since it was as that."""
        return Usage(
            self.allocated.since(old.allocated),
            self.request.since(old.request),
            self.inqueue.since(old.inqueue),
            self.elastic.since(old.elastic),
            self.reserved.since(old.reserved),
        )

    @property
    def is_nothing(self) -> bool:
        """Whether nothing has changed, of a change."""
        changes = (self.allocated, self.request, self.inqueue, self.elastic, self.reserved)
        return not any(one.amounts for one in changes)

    @property
    def frees(self) -> bool:
        """Whether a change leaves more room, for pods or for groups."""
        held = self.held
        promised = held + self.inqueue - self.elastic
        return any(amount < 0 for one in (held, promised) for amount in one.amounts.values())

    @property
    def held(self) -> Resources:
        """What nobody else can have: allocated and reserved."""
        return self.allocated + self.reserved


UNUSED = Usage()


class Accounts:
    """What queues have and deserve."""

    def __init__(self, tree: QueueTree, shared: Resources = UNLIMITED) -> None:
        self.tree = tree
        self.shared = shared
        """What is shared by weight."""
        self.rules = tree.rules
        self.policy = tree.policy
        self._leaf_reserves = tree.rules.reserved_not_in_ancestors
        self._usage: dict[str, Usage] = {}
        self._groups: Counter[str] = Counter()
        self._deserved: Mapping[str, Resources] | None = None
        self._shares: dict[str, float] = {}
        self._fresh: set[str] = set()
        self._wait_for_share: set[str] = set()

    # -- changes ---------------------------------------------------------------------------------

    def move(self, path: Collection[str], old: Usage, new: Usage) -> None:
        """Count a group as something else in these queues."""
        change = new.since(old)
        if not path or change.is_nothing:
            return
        above = change
        if self._leaf_reserves:
            above = msgspec.structs.replace(change, reserved=NOTHING)
        for number, queue in enumerate(path):
            self._usage[queue] = self.usage(queue) + (above if number else change)
            if not number or not self.rules.stale_ancestor_share:
                self._shares.pop(queue, None)
        if change.request.amounts:
            self._forget_weights()
        if change.frees:
            self.note_freed(path)

    def enter(self, queue: str, groups: int = 1) -> None:
        """Note that a queue has so many more groups; those with none deserve nothing by weight."""
        self._groups[queue] += groups
        if self._groups[queue] in {0, groups}:
            self._forget_weights()

    def note_freed(self, path: Collection[str]) -> None:
        """Note that there may be room in these queues."""
        self._fresh.update(path)

    def wait_for_share(self, queue: str) -> None:
        """Note that there may be room in a queue when it deserves something else by weight."""
        self._wait_for_share.add(queue)

    def take_freed(self) -> set[str]:
        """The queues in which room may have come free since this was asked last."""
        fresh, self._fresh = self._fresh, set()
        return fresh

    def share_anew(self, shared: Resources) -> None:
        """Share something else by weight."""
        if shared != self.shared:
            self.shared = shared
            self._forget_weights()

    def _forget_weights(self) -> None:
        if self._deserved is not None:
            self._deserved = None
            self._shares.clear()
            self.note_freed(self._wait_for_share)
            self._wait_for_share.clear()

    # -- questions -------------------------------------------------------------------------------

    def usage(self, queue: str) -> Usage:
        """What a queue and those below it have."""
        return self._usage.get(queue, UNUSED)

    def quota(self, queue: str) -> Quota:
        """What a queue may have, and what it deserves."""
        quota = self.tree.nodes[queue].quota
        if not self.policy.shares_nodes:
            return quota
        return replace(quota, deserved=self._by_weight().get(queue, quota.guarantee))

    def limit(self, queue: str) -> Resources:
        """What the pods of a queue may have together."""
        if self.policy.caps_at_deserved:
            return self.quota(queue).deserved
        return self.tree.nodes[queue].quota.real_capability

    def share(self, queue: str) -> float:
        """How much of what it deserves a queue has; 1 if it deserves nothing in particular."""
        share = self._shares.get(queue)
        if share is None:
            share = self._shares[queue] = self._share(queue)
        return share

    def _share(self, queue: str) -> float:
        return self.policy.share(self.quota(queue).deserved, self.usage(queue).allocated)

    def _by_weight(self) -> Mapping[str, Resources]:
        if self._deserved is None:
            claims = {name: self._claim(name) for name, number in self._groups.items() if number}
            self._deserved = self.policy.deserved(claims, self.shared)
        return self._deserved

    def _claim(self, queue: str) -> Claim:
        node = self.tree.nodes[queue]
        quota = node.quota
        return Claim(node.weight, self.usage(queue).request, quota.real_capability, quota.guarantee)
