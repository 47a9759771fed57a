"""A stored object: its bytes, and the little of it that is looked at without decoding them.

A snapshot is only a list of references to entries, so keeping some costs little; the oldest are
dropped, and a client that comes back for one of those is told that its token has expired.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, decode

Fields = dict[str, str]
FieldReader = Callable[[str, JsonObject], Fields]
"""Reads, for a storage name, the values that field selectors may ask for."""


class Key(NamedTuple):
    """Where an object stands: its storage name, its namespace (or ""), its name."""

    storage: str
    namespace: str
    name: str


class Entry:
    """One version of one object. Its data never changes: a write makes a new entry."""

    __slots__ = ("data", "deleting", "fields", "key", "labels", "owners", "revision", "uid")

    def __init__(self, key: Key, revision: int, data: bytes, obj: JsonObject, fields: Fields):
        meta = obj["metadata"]
        labels = meta.get("labels")
        self.key = key
        self.revision = revision
        self.data = data
        self.uid: str = meta.get("uid", "")
        self.labels: dict[str, str] = _shared(labels) if labels else _NONE
        self.fields = fields or _NONE
        self.owners: tuple[str, ...] = tuple(
            owner.get("uid", "") for owner in meta.get("ownerReferences") or ()
        )
        self.deleting = "deletionTimestamp" in meta

    def object(self) -> JsonObject:
        """The object, decoded afresh: the caller may change it."""
        obj: JsonObject = decode(self.data)
        return obj


_NONE: dict[str, str] = {}


def _shared(labels: dict[str, str]) -> dict[str, str]:
    """The same labels with shared strings: thousands of objects carry the same few."""
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}


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
