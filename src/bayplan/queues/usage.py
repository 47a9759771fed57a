"""What a queue has, and what is asked of it.

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

import msgspec

from bayplan.queues.resources import NOTHING, Resources


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
