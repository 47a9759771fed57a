"""The catalogue of stored images by handler and id, and the content they use.

It is read from memory; changes are written to the database first, so that memory never differs from
the state after a restart. A name belongs to one image of a handler: pulling a moved tag removes it
from the image that had it. The same name for another handler is another name.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from bayplan.images.registry.errors import MalformedReferenceError, image_to_pull
from bayplan.images.singleflight import uninterrupted
from bayplan.images.store.database import (
    CatalogueDatabase,
    ContentMetadata,
    ContentRef,
    StoredImage,
    StoredImageKey,
)

_DIGEST_LIMIT = 32
_ID = re.compile(r"(?:sha256:)?([0-9a-f]{4,64})")


class Catalogue:
    """All stored images; the only place that changes them."""

    def __init__(self, database: CatalogueDatabase, entries: Iterable[StoredImage]) -> None:
        self._database = database
        self._entries: dict[StoredImageKey, StoredImage] = {}
        self._names: dict[tuple[str, str], StoredImageKey] = {}
        self._uses: Counter[ContentRef] = Counter()
        self._writing = asyncio.Lock()
        self.revision = 0  # counts changes, for caches of lists
        for entry in entries:
            self._put(entry)

    def entries(self) -> list[StoredImage]:
        """Return every image."""
        return list(self._entries.values())

    def handlers(self) -> set[str]:
        """Return the handlers that have images."""
        return {key.handler for key in self._entries}

    def uses(self, content: ContentRef) -> bool:
        """Return whether any image uses a blob or snapshot."""
        return self._uses[content] > 0

    def find(self, handler: str, image: str) -> StoredImage | None:
        """Return an image by id, by name, or by a prefix of its id."""
        exact = self._entries.get(StoredImageKey(handler, image))
        return exact or self._by_name(handler, image) or self._by_prefix(handler, image)

    def _by_prefix(self, handler: str, image: str) -> StoredImage | None:
        match = _ID.fullmatch(image)
        if match is None:
            return None
        prefix = f"sha256:{match[1]}"
        found = [
            entry
            for key, entry in self._entries.items()
            if key.handler == handler and key.image_id.startswith(prefix)
        ]
        return found[0] if len(found) == 1 else None

    def _by_name(self, handler: str, image: str) -> StoredImage | None:
        try:
            name = str(image_to_pull(image))
        except MalformedReferenceError:
            return None
        key = self._names.get((handler, name))
        return self._entries[key] if key else None

    async def add(self, entry: StoredImage, facts: ContentMetadata) -> StoredImage:
        """Add an image; it keeps its names, and the new ones are removed from other images."""
        return await uninterrupted(self._add(entry, facts))

    async def forget_content(self, removed: Callable[[], list[ContentRef]]) -> None:
        """Delete the metadata of removed content, computed under the write lock."""
        await uninterrupted(self._forget_content(removed))

    async def _forget_content(self, removed: Callable[[], list[ContentRef]]) -> None:
        async with self._writing:
            if content := removed():
                await asyncio.to_thread(self._database.forget_content, content)

    async def remove(self, key: StoredImageKey) -> StoredImage | None:
        """Remove an image of one handler with all of its names; return it."""
        return await uninterrupted(self._remove(key))

    async def _add(self, entry: StoredImage, facts: ContentMetadata) -> StoredImage:
        async with self._writing:
            before = self._entries.get(entry.key)
            if before is not None:
                entry = msgspec.structs.replace(entry, names=_joined(before, entry))
            changed = [entry, *self._entries_losing_names(entry)]
            await asyncio.to_thread(self._database.write, changed, [], facts)
            for image in changed:
                self._put(image)
            return entry

    def _entries_losing_names(self, entry: StoredImage) -> list[StoredImage]:
        """Return the images that lose a name to this one."""
        owners = {self._names.get((entry.handler, name), entry.key) for name in entry.names}
        losers = [self._entries[key] for key in owners - {entry.key}]
        return [
            msgspec.structs.replace(
                loser, names=tuple(name for name in loser.names if name not in entry.names)
            )
            for loser in losers
        ]

    async def _remove(self, key: StoredImageKey) -> StoredImage | None:
        async with self._writing:
            entry = self._entries.get(key)
            if entry is not None:
                await asyncio.to_thread(self._database.write, [], [key])
                self._forget(entry)
            return entry

    def _put(self, entry: StoredImage) -> None:
        self.revision += 1
        if before := self._entries.get(entry.key):
            self._forget(before)
        self._entries[entry.key] = entry
        self._uses.update(entry.content)
        for name in entry.names:
            self._names[entry.handler, name] = entry.key

    def _forget(self, entry: StoredImage) -> None:
        self.revision += 1
        del self._entries[entry.key]
        self._uses.subtract(entry.content)
        for name in entry.names:
            if self._names.get((entry.handler, name)) == entry.key:
                del self._names[entry.handler, name]


def _joined(before: StoredImage, entry: StoredImage) -> tuple[str, ...]:
    """Return old and new names.

    An index can change with every pull and still have the same image: only the latest digests are
    kept, so that the list stays bounded.
    """
    names = list(dict.fromkeys((*before.names, *entry.names)))
    digests = [name for name in names if "@" in name]
    dropped = set(digests[:-_DIGEST_LIMIT]) - set(entry.names)
    return tuple(name for name in names if name not in dropped)
