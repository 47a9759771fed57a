"""When nothing is given back: for a while after a purchase, a deletion, and a failure.

The delays hold for the whole cluster, or, with `scale-down-delay-type-local`, for the group that
was bought of, deleted from, or failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.options import AutoscalerOptions

EVERYWHERE = ""


class Activity(Enum):
    """What is waited after."""

    ADD = "a scale-up"
    DELETE = "a deletion"
    FAILURE = "a failed deletion"


@dataclass(slots=True)
class Cooldowns:
    """When each last happened, by group and in all."""

    _last: dict[tuple[Activity, str], datetime] = field(default_factory=dict)

    def note(self, activity: Activity, group: str, now: datetime) -> None:
        """It has happened in a group."""
        self._last[activity, group] = self._last[activity, EVERYWHERE] = now

    def everywhere(self, now: datetime, options: AutoscalerOptions) -> str:
        """Why nothing is given back anywhere; empty if that is not so."""
        return "" if options.scale_down_delay_type_local else self._why(EVERYWHERE, now, options)

    def of_group(self, group: str, now: datetime, options: AutoscalerOptions) -> str:
        """Why nothing is given back of a group; empty if that is not so."""
        return self._why(group, now, options) if options.scale_down_delay_type_local else ""

    def _why(self, group: str, now: datetime, options: AutoscalerOptions) -> str:
        for activity, seconds in _delays(options).items():
            last = self._last.get((activity, group))
            if last is not None and last + timedelta(seconds=seconds) > now:
                return f"{activity.value} was less than {seconds:g}s ago"
        return ""


def _delays(options: AutoscalerOptions) -> dict[Activity, float]:
    return {
        Activity.ADD: options.scale_down_delay_after_add,
        Activity.FAILURE: options.scale_down_delay_after_failure,
        Activity.DELETE: options.scale_down_delay_after_delete or options.scan_interval,
    }
