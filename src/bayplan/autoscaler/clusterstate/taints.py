"""The taints that nodes get on their way out.

`ToBeDeletedByClusterAutoscaler` keeps every pod away from a node that is being given back;
`DeletionCandidateOfClusterAutoscaler` only asks to. Both say in seconds when they were set.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bayplan.kube.nodes import Node, Taint
from bayplan.kube.selectors import parse_int64

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
MAX_DELETION_TIME = timedelta(minutes=5)
"""How long a cloud has to take a node away."""

_LAST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())
"""The last moment that can be told."""


def to_be_deleted(now: datetime) -> Taint:
    """The taint of a node that is given back now."""
    return Taint(key=TO_BE_DELETED, value=_seconds(now), effect="NoSchedule")


def deletion_candidate(now: datetime) -> Taint:
    """The taint of a node that is not needed since now."""
    return Taint(key=DELETION_CANDIDATE, value=_seconds(now), effect="PreferNoSchedule")


def has_taint(node: Node, key: str) -> bool:
    """Whether a node has a taint of this key."""
    return any(taint.key == key for taint in node.spec.taints)


def without_taint(taints: Iterable[Taint], key: str) -> list[Taint]:
    """The taints but those of this key."""
    return [taint for taint in taints if taint.key != key]


def is_being_deleted(node: Node, now: datetime) -> bool:
    """Whether a node was to be deleted not so long ago that it must have failed."""
    since = tainted_since(node, TO_BE_DELETED)
    return since is not None and now - since < MAX_DELETION_TIME


def tainted_since(node: Node, key: str) -> datetime | None:
    """When a node got a taint; None if it has none, or it does not say."""
    for taint in node.spec.taints:
        if taint.key == key:
            return _moment(taint.value)
    return None


def _moment(value: str) -> datetime | None:
    seconds = parse_int64(value)
    return None if seconds is None else datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC)


def _seconds(now: datetime) -> str:
    return str(int(now.timestamp()))
