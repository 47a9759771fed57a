"""A stored object: its bytes, and the fields that are read without decoding them.

A list snapshot is only a list of references to entries, so keeping some costs little. The oldest
are dropped; a client that continues such a list gets 410 Expired.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, decode

Fields = dict[str, str]
FieldReader = Callable[[str, JsonObject], Fields]
"""Returns, for a storage name and an object, the values for field selectors."""


class ObjectKey(NamedTuple):
    """Key of an object: its storage name, its namespace (or ""), its name."""

    storage: str
    namespace: str
    name: str


class StoreEntry:
    """One version of one object. It is immutable: a write makes a new entry."""

    __slots__ = ("data", "fields", "is_terminating", "key", "labels", "owners", "revision", "uid")

    def __init__(self, key: ObjectKey, revision: int, data: bytes, obj: JsonObject, fields: Fields):
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
        self.is_terminating = "deletionTimestamp" in meta

    def object(self) -> JsonObject:
        """Return the object, newly decoded: the caller may change it."""
        obj: JsonObject = decode(self.data)
        return obj


_NONE: dict[str, str] = {}


def _shared(labels: dict[str, str]) -> dict[str, str]:
    """Return the labels with interned strings: thousands of objects have the same few."""
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}


SnapshotKey = tuple[str, str, int]
"""Storage name, namespace (or ""), revision."""


class ListSnapshots:
    """The lists that clients may still page through."""

    def __init__(self, capacity: int = 32) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[SnapshotKey, Sequence[StoreEntry]] = OrderedDict()

    def keep(self, key: SnapshotKey, entries: Sequence[StoreEntry]) -> None:
        """Keep a list until newer ones replace it."""
        self._kept[key] = entries
        self._kept.move_to_end(key)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)

    def get(self, key: SnapshotKey) -> Sequence[StoreEntry] | None:
        """Return a list as it was, or None if it was dropped."""
        return self._kept.get(key)
