"""Which images go: a pure decision over the records, the policy and the time.

In use and pinned ones never go; young ones do not go for space. Of the others, the longest unused
goes first. Each is one (image, handler), so that removing one variant leaves every other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bayplan.images.collection.policy import CollectionPolicy
from bayplan.images.collection.records import ImageRecord


class Reason(StrEnum):
    """Why an image goes."""

    AGE = "age"
    SPACE = "space"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An image that may go, and why."""

    record: ImageRecord
    reason: Reason


def removable(records: Iterable[ImageRecord]) -> list[ImageRecord]:
    """The images that nobody needs, in the order in which they go."""
    free = [record for record in records if not record.in_use and not record.pinned]
    return sorted(free, key=lambda record: record.eviction_order)


def too_old(
    records: Iterable[ImageRecord], policy: CollectionPolicy, now: datetime, started: datetime
) -> list[Candidate]:
    """The images unused for longer than the maximum age.

    An agent that has only just started does not know when images were last used, so it waits for
    the maximum age itself before it judges. An image that was never used is as old as its stay.
    """
    if not policy.maximum_age or now - started <= policy.maximum_age:
        return []
    return [
        Candidate(record, Reason.AGE)
        for record in removable(records)
        if now - (record.last_used or record.first_detected) > policy.maximum_age
    ]


def for_space(
    records: Iterable[ImageRecord], policy: CollectionPolicy, now: datetime
) -> list[Candidate]:
    """The images that may go to make room, in order; take from the front until there is enough."""
    return [
        Candidate(record, Reason.SPACE)
        for record in removable(records)
        if now - record.first_detected >= policy.minimum_age
    ]
