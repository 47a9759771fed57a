"""Lists that are being read page by page: the first page pins what the later ones show.

A snapshot is only a list of references to entries, so keeping some costs little; the oldest are
dropped, and a client that comes back for one of those is told that its token has expired.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from bayplan.embedded.apiserver.store.entry import Entry

SnapshotKey = tuple[str, str, int]
"""Storage name, namespace (or ""), revision."""


class Snapshots:
    """The lists that clients may still page through."""

    def __init__(self, capacity: int = 32) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[SnapshotKey, Sequence[Entry]] = OrderedDict()

    def keep(self, key: SnapshotKey, entries: Sequence[Entry]) -> None:
        """Remember a list until newer ones push it out."""
        self._kept[key] = entries
        self._kept.move_to_end(key)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)

    def get(self, key: SnapshotKey) -> Sequence[Entry] | None:
        """A list as it was, if it is still known."""
        return self._kept.get(key)
