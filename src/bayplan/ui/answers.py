"""What the page asks of rooms that this one does not know: handed in by whoever serves it.

Each is a plain function over a cluster that stands still, and may take seconds: they run in a
thread, one at a time, at a bounded pace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.ui.picture.groups import GroupFacts
from bayplan.ui.tables import Row

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue


@dataclass(frozen=True, slots=True)
class Still:
    """A cluster that stands still: a copy for whoever takes long."""

    objects: Sequence[KubeObject]
    profile: Profile
    time: datetime

    def snapshot(self) -> Snapshot:
        """The model of it, with claims to devices if they are there."""
        return Snapshot(self.objects, profile=self.profile)


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The queues, and the pods that they hold back."""

    rows: Sequence[Row] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    """By pod what its queue says."""


def _no_queues(_: Still) -> QueueAnswer:
    return QueueAnswer()


def _no_plan(_: Still) -> Row | None:
    return None


def _no_explanation(_: Snapshot, __: Still, ___: str) -> JsonValue:
    raise LookupError("nobody here explains pods")


@dataclass(frozen=True, slots=True)
class Answers:
    """Who answers what."""

    explain: Callable[[Snapshot, Still, str], JsonValue] = _no_explanation
    """Why a pod is where it is; LookupError if there is no such pod."""
    queues: Callable[[Still], QueueAnswer] = _no_queues
    plan: Callable[[Still], Row | None] = _no_plan
    """What an autoscaler would do next, as a row of `plans`; None if nobody can say."""
    groups: Callable[[], Iterable[GroupFacts]] = tuple
    """Groups that somebody has declared."""
