"""The taints of nodes that are being removed, or are candidates for it.

`ToBeDeletedByClusterAutoscaler` (NoSchedule) is set on a node that is being removed,
`DeletionCandidateOfClusterAutoscaler` (PreferNoSchedule) on an unneeded node. Their values are the
time when they were set, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bayplan.kube.nodes import Node, Taint
from bayplan.kube.selectors import parse_int64

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
MAX_DELETION_TIME = timedelta(minutes=5)
"""How long the cloud may take to delete a node."""

_LAST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())
"""The latest time that a datetime can represent."""


def to_be_deleted(now: datetime) -> Taint:
    """Return the taint of a node that is removed now."""
    return Taint(key=TO_BE_DELETED, value=_seconds(now), effect="NoSchedule")


def deletion_candidate(now: datetime) -> Taint:
    """Return the taint of a node that is unneeded since now."""
    return Taint(key=DELETION_CANDIDATE, value=_seconds(now), effect="PreferNoSchedule")


def has_taint(node: Node, key: str) -> bool:
    """Whether a node has a taint of this key."""
    return any(taint.key == key for taint in node.spec.taints)


def without_taint(taints: Iterable[Taint], key: str) -> list[Taint]:
    """Return the taints without those of this key."""
    return [taint for taint in taints if taint.key != key]


def is_being_deleted(node: Node, now: datetime) -> bool:
    """Whether a node is being deleted, and the deletion has not timed out."""
    since = tainted_since(node, TO_BE_DELETED)
    return since is not None and now - since < MAX_DELETION_TIME


def tainted_since(node: Node, key: str) -> datetime | None:
    """Return when a taint was set; None if the node has none, or its value is no time."""
    for taint in node.spec.taints:
        if taint.key == key:
            return _moment(taint.value)
    return None


def _moment(value: str) -> datetime | None:
    seconds = parse_int64(value)
    return None if seconds is None else datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC)


def _seconds(now: datetime) -> str:
    return str(int(now.timestamp()))
