"""What time it is in a data file: as late as the last run with it came, however that ended.

Objects carry dates, so whoever goes on with them must not be earlier than they are. A run notes its
time beside the objects, at most once a second, with the writes that it makes; the next one begins
there if its time is virtual.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.watchcache import Change

_KEY = "moment"
_PAUSE = timedelta(seconds=1)


class MomentKeeper:
    """Notes in a data file how late it is."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._due = clock.now()

    def observe(self, _: Change) -> None:
        """Something is written: the time goes with it, if there is a file to go to."""
        if self._database.path is not None and self._clock.now() >= self._due:
            self.keep()

    def keep(self) -> None:
        """Note the time."""
        now = self._clock.now()
        self._database.put_meta(_KEY, now.isoformat().encode())
        self._due = now + _PAUSE


def moment_of(data: Path | None) -> datetime | None:
    """How late the last run with a data file came; None if there was none."""
    if data is None:
        return None
    database = Database(data)
    try:
        kept = database.get_meta(_KEY)
    finally:
        database.close()
    return None if kept is None else datetime.fromisoformat(kept.decode())
