"""The log of a run: a line for every change, for people, and a digest of all changes, for machines.

A line says when, what happened to which object, and what that came to. The digest covers the time,
the resource version, the object and its bytes, so that two runs whose digests are the same are the
same to the byte; only of objects that hold keys and certificates, which no seed can give, the bytes
are left out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import TextIO

from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.simulation.telling import tell

_WORDS = {"ADDED": "created", "MODIFIED": "changed", "DELETED": "deleted"}

_WITH_KEYS = frozenset(
    {
        "secrets",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)


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
        key, now = change.entry.key, self._now()
        data = b"" if key.storage in _WITH_KEYS else change.entry.data
        content = hashlib.sha256(data).hexdigest()[:16]
        place = f"{key.namespace}/{key.name}" if key.namespace else key.name
        exact = f"{now:.3f} {change.revision} {change.type} {key.storage} {place} {content}\n"
        self._digest.update(exact.encode())
        self.lines += 1
        self.counts[f"{change.type} {key.storage}"] += 1
        if self._out is not None:
            told = tell(change)
            what = f"{_WORDS[change.type]} {key.storage} {place}{told and ': '}{told}"
            self._out.write(f"{_moment(now)} {what} [{change.revision} {content}]\n")

    @property
    def digest(self) -> str:
        """The digest of everything so far."""
        return self._digest.hexdigest()


def _moment(seconds: float) -> str:
    """Days, hours, minutes and seconds since the beginning."""
    minutes, left = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02}:{minutes:02}:{left:06.3f}"
