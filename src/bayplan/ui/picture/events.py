"""The latest events of a cluster."""

from __future__ import annotations

from heapq import nlargest

from bayplan.kube.events import Event
from bayplan.ui import texts
from bayplan.ui.tables import Row, Tables

MAX_EVENTS = 500
"""Maximum number of events that are shown."""


class Events:
    """The latest events, in any order of arrival."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[str, str] = {}
        """By event, when it was last observed."""

    def put(self, event: Event) -> None:
        """Add or update an event."""
        row = event_row(event)
        self._known[event.key] = str(row[1])
        self._tables.set("events", row)
        if len(self._known) > MAX_EVENTS * 2:
            self.trim()

    def drop(self, key: str) -> None:
        """Remove an event that was deleted."""
        if self._known.pop(key, None) is not None:
            self._tables.drop("events", texts.identity(key))

    def trim(self) -> None:
        """Remove all but the latest events."""
        if len(self._known) <= MAX_EVENTS:
            return
        kept = set(nlargest(MAX_EVENTS, self._known, key=lambda key: (self._known[key], key)))
        for key in [one for one in self._known if one not in kept]:
            self.drop(key)


def event_row(event: Event) -> Row:
    """Return the row of an event of either API."""
    about, series = event.regarding, event.series
    last = series.last_observed_time if series is not None else event.deprecated_last_timestamp
    when = last or event.event_time or event.metadata.creation_timestamp or ""
    place = f"{about.namespace}/{about.name}" if about.namespace else about.name
    return [
        texts.identity(event.key),
        texts.name(when),
        "Warning" if event.type == "Warning" else "Normal",
        texts.name(event.reason),
        texts.name(f"{about.kind} {place}"),
        texts.line(event.note),
        min(max(series.count if series is not None else event.deprecated_count, 1), 1 << 31),
    ]
