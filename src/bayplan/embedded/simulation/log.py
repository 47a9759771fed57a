"""The log of a run: a line for every change, and a digest of all lines.

A line has the time in seconds from the start, the resource version, what happened, to what, and a
digest of the object's bytes, so that two runs are the same to the byte if their logs are.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import TextIO

from bayplan.embedded.apiserver.store.journal import Change


class RunLog:
    """Listens to a store."""

    def __init__(self, now: Callable[[], float], out: TextIO | None = None) -> None:
        self._now = now
        self._out = out
        self._digest = hashlib.sha256()
        self.lines = 0
        self.counts: Counter[str] = Counter()

    def observe(self, change: Change) -> None:
        """Note a change."""
        key = change.entry.key
        content = hashlib.sha256(change.entry.data).hexdigest()[:16]
        place = f"{key.namespace}/{key.name}" if key.namespace else key.name
        line = (
            f"{self._now():.3f} {change.revision} {change.type} {key.storage} {place} {content}\n"
        )
        self._digest.update(line.encode())
        self.lines += 1
        self.counts[f"{change.type} {key.storage}"] += 1
        if self._out is not None:
            self._out.write(line)

    @property
    def digest(self) -> str:
        """The digest of everything so far."""
        return self._digest.hexdigest()
