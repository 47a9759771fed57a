"""The sums of all queues of one tree: what each has, what it deserves, and its share of that.

A change of one group moves the sums of its queue and of those above it, and drops what was computed
from them; nothing else is looked at. What queues deserve by weight depends on what is requested of
all of them, and is computed again on demand when that has changed.

| quantity | what it is |
|---|---|
| allocated | what pods with a node request; those that are being deleted no longer count |
| request | allocated, and what pods without a node request |
| inqueue | what admitted groups need to start and have not got yet |
| elastic | what groups have beyond what they need to start |
| reserved | what pods request that quota has admitted and that have no node yet |

Each is a sum over the pods and groups of a queue and of all queues below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import msgspec

from bayplan.queues.policies import QueueDemand
from bayplan.queues.queue_quota import Quota
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
        """Return the difference to an earlier value."""
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
        """Whether a change frees quota, for pods or for groups."""
        held = self.held
        promised = held + self.inqueue - self.elastic
        return any(amount < 0 for one in (held, promised) for amount in one.amounts.values())

    @property
    def held(self) -> Resources:
        """The amounts that others cannot use: allocated and reserved."""
        return self.allocated + self.reserved


UNUSED = Usage()
LONGEST_LOG = 1000
"""Changes of shares that are kept, and two more for each queue."""


class Accounts:
    """The usage, quota and share of all queues."""

    def __init__(self, tree: QueueTree, shared: Resources = UNLIMITED) -> None:
        self.tree = tree
        self.shared = shared
        """What is shared by weight."""
        self.policy = tree.policy
        self._usage: dict[str, Usage] = {}
        self._groups: Counter[str] = Counter()
        self._deserved: Mapping[str, Resources] | None = None
        self._shares: dict[str, float] = {}
        self.share_log: list[str] = []
        """The queues whose shares may have changed, in order; a new list if all may have."""
        self._fresh: set[str] = set()
        self._wait_for_share: set[str] = set()

    # -- changes ---------------------------------------------------------------------------------

    def move(self, path: Sequence[str], old: Usage, new: Usage) -> None:
        """Count a group as something else in these queues."""
        change = new.since(old)
        if not path or change.is_nothing:
            return
        above = self.change_above(change)
        for number, queue in enumerate(path):
            self._usage[queue] = self.usage(queue) + (above if number else change)
        self.note_shares(path)
        self._log_shares(path)
        if change.request.amounts:
            self._forget_weights()
        if change.frees:
            self.note_freed(path)

    def change_above(self, change: Usage) -> Usage:
        """Return what a change of a queue changes in those above it: the same."""
        return change

    def note_shares(self, path: Sequence[str]) -> None:
        """Note that the shares of a queue and of those above it have changed."""
        for queue in path:
            self._shares.pop(queue, None)

    def _log_shares(self, path: Collection[str]) -> None:
        if len(self.share_log) > LONGEST_LOG + 2 * len(self.tree.nodes):
            self.share_log = []
        self.share_log += path

    def enter(self, queue: str, groups: int = 1) -> None:
        """Note that a queue has so many more groups; those with none deserve nothing by weight."""
        self._groups[queue] += groups
        if self._groups[queue] in {0, groups}:
            self._forget_weights()

    def note_freed(self, path: Collection[str]) -> None:
        """Note that quota may have come free in these queues."""
        self._fresh.update(path)

    def wait_for_share(self, queue: str) -> None:
        """Note that quota may come free in a queue when it deserves something else by weight."""
        self._wait_for_share.add(queue)

    def take_freed(self) -> set[str]:
        """Return the queues in which quota may have come free since the last call."""
        fresh, self._fresh = self._fresh, set()
        return fresh

    def share_anew(self, shared: Resources) -> None:
        """Set the amounts that are shared by weight."""
        if shared != self.shared:
            self.shared = shared
            self._forget_weights()

    def _forget_weights(self) -> None:
        if self._deserved is not None:
            self._deserved = None
            self._shares.clear()
            self.share_log = []
            self.note_freed(self._wait_for_share)
            self._wait_for_share.clear()

    # -- questions -------------------------------------------------------------------------------

    def usage(self, queue: str) -> Usage:
        """Return the usage of a queue and its descendants."""
        return self._usage.get(queue, UNUSED)

    def quota(self, queue: str) -> Quota:
        """Return the quota of a queue, with what it deserves now."""
        quota = self.tree.nodes[queue].quota
        if not self.policy.shares_nodes:
            return quota
        return replace(quota, deserved=self._by_weight().get(queue, quota.guarantee))

    def limit(self, queue: str) -> Resources:
        """Return the limit of all pods of a queue: its real capability."""
        return self.tree.nodes[queue].quota.real_capability

    def promised(self, queue: str, name: str) -> float:
        """Return what a queue uses, reserves or has admitted of a resource; no elastic pods."""
        usage = self.usage(queue)
        held = usage.allocated[name] + usage.reserved[name]
        return held + usage.inqueue[name] - usage.elastic[name]

    def reserved_in(self, queue: str, leaf: str) -> Resources:
        """Return the reservations in a queue that count against a request of a leaf queue."""
        del leaf
        return self.usage(queue).reserved

    def counts_reservations(self, request: Resources, reserved: Resources) -> bool:
        """Whether others' reservations stand in the way of a request of which so much is reserved.

        Where all of it is reserved they do not: those that together pass the limit would keep each
        other from being placed.
        """
        return not reserved.amounts or not request.fits(reserved)

    def share(self, queue: str) -> float:
        """Return the share of a queue: allocated relative to deserved; 1 if it deserves nothing."""
        share = self._shares.get(queue)
        if share is None:
            share = self._shares[queue] = self._share(queue)
        return share

    def _share(self, queue: str) -> float:
        return self.policy.share(self.quota(queue).deserved, self.usage(queue).allocated)

    def _by_weight(self) -> Mapping[str, Resources]:
        if self._deserved is None:
            demands = {name: self._demand(name) for name, number in self._groups.items() if number}
            self._deserved = self.policy.deserved(demands, self.shared)
        return self._deserved

    def _demand(self, queue: str) -> QueueDemand:
        node = self.tree.nodes[queue]
        quota = node.quota
        return QueueDemand(
            node.weight, self.usage(queue).request, quota.real_capability, quota.guarantee
        )
