"""The informer's copy of the objects, and the changes that follow from what the server says.

Pure bookkeeping, no I/O. Whatever the server tells, the changes that come out describe each
object's life without gaps: added once, updated while it is there, deleted once. An object that was
deleted and made again under its name while we were away is told as a deletion and an addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic

from bayplan.client.informers.changes import Change
from bayplan.client.objects import key_of, uid_of, version_of
from bayplan.client.resources import T
from bayplan.client.verbs.watching import WatchEvent


class Store(Mapping[str, T], Generic[T]):
    """Objects by `namespace/name`, or by name if cluster-scoped."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def replace(
        self, listed: dict[str, T], keep: frozenset[str] = frozenset()
    ) -> Iterable[Change[T]]:
        """Take a whole new list, by key; deletions are told first, then the rest in the list's
        order.

        Objects in `keep` are there but could not be read: what was known of them stays.
        """
        if not self._items:
            self._items = listed.copy()
            return (Change("added", new=item) for item in listed.values())
        gone = [key for key in self._items if key not in listed and key not in keep]
        changes = [Change("deleted", old=self._items.pop(key)) for key in gone]
        for item in listed.values():
            changes += self._put(item)
        return changes

    def apply(self, event: WatchEvent[T]) -> list[Change[T]]:
        """Take one event of a watch."""
        if event.object is None:
            return []
        return self._drop(event.object) if event.type == "DELETED" else self._put(event.object)

    def _put(self, item: T) -> list[Change[T]]:
        key = key_of(item)
        old = self._items.get(key)
        if old is not None and version_of(old) == version_of(item):
            return []
        self._items[key] = item
        if old is None:
            return [Change("added", new=item)]
        if uid_of(old) != uid_of(item):
            return [Change("deleted", old=old), Change("added", new=item)]
        return [Change("updated", old=old, new=item)]

    def _drop(self, item: T) -> list[Change[T]]:
        old = self._items.get(key_of(item))
        if old is None or uid_of(old) != uid_of(item):
            return []
        del self._items[key_of(item)]
        return [Change("deleted", old=old, new=item)]
