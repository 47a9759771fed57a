"""The time of a data file: how far the last run with it came, however that ended.

Objects have timestamps, so a run that continues with them must not be earlier. A run records its
time beside the objects, at most once a second, together with its writes; the next run starts there
if its time is virtual.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent

_KEY = "moment"
_INTERVAL = timedelta(seconds=1)


class DataFileTime:
    """Records the time of a run in its data file."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._due = clock.now()

    def observe(self, _: WatchCacheEvent) -> None:
        """Record the time with a write, if there is a data file and a second has passed."""
        if self._database.path is not None and self._clock.now() >= self._due:
            self.record()

    def record(self) -> None:
        """Record the current time."""
        now = self._clock.now()
        self._database.put_meta(_KEY, now.isoformat().encode())
        self._due = now + _INTERVAL


def read_data_file_time(data: Path | None) -> datetime | None:
    """Return the time at which the last run with a data file ended; None if there was none."""
    if data is None:
        return None
    database = Database(data)
    try:
        recorded = database.get_meta(_KEY)
    finally:
        database.close()
    return None if recorded is None else datetime.fromisoformat(recorded.decode())
