"""Which images are here, by handler and id, and what content they need.

Answers come from memory; changes go to the database first, so memory never says what a restart
would not. A name belongs to one entry of a handler: pulling a moved tag takes it from the entry
that had it. The same name under another handler is another name.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from bayplan.images.flights import uninterrupted
from bayplan.images.registry.errors import MalformedReferenceError, image_to_pull
from bayplan.images.store.database import Content, Database, Entry, EntryKey, Facts

_DIGEST_LIMIT = 32
_ID = re.compile(r"(?:sha256:)?([0-9a-f]{4,64})")


class Catalogue:
    """Every entry; the only place that changes them."""

    def __init__(self, database: Database, entries: Iterable[Entry]) -> None:
        self._database = database
        self._entries: dict[EntryKey, Entry] = {}
        self._names: dict[tuple[str, str], EntryKey] = {}
        self._uses: Counter[Content] = Counter()
        self._writing = asyncio.Lock()
        self.revision = 0  # counts changes, for whoever keeps an answer
        for entry in entries:
            self._remember(entry)

    def entries(self) -> list[Entry]:
        """List every entry."""
        return list(self._entries.values())

    def handlers(self) -> set[str]:
        """List the handlers that have entries."""
        return {key.handler for key in self._entries}

    def uses(self, content: Content) -> bool:
        """Say whether any entry needs a blob or chain."""
        return self._uses[content] > 0

    def find(self, handler: str, image: str) -> Entry | None:
        """Look an image up by id, by name in any spelling, or by the beginning of its id."""
        exact = self._entries.get(EntryKey(handler, image))
        return exact or self._by_name(handler, image) or self._by_prefix(handler, image)

    def _by_prefix(self, handler: str, image: str) -> Entry | None:
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

    def _by_name(self, handler: str, image: str) -> Entry | None:
        try:
            name = str(image_to_pull(image))
        except MalformedReferenceError:
            return None
        key = self._names.get((handler, name))
        return self._entries[key] if key else None

    async def add(self, entry: Entry, facts: Facts) -> Entry:
        """Take an image in; it keeps the names it had, and takes the new ones from others."""
        return await uninterrupted(self._add(entry, facts))

    async def forget_content(self, gone: Callable[[], list[Content]]) -> None:
        """Drop what is written of content that is gone, as of the moment at which it is done."""
        await uninterrupted(self._forget_content(gone))

    async def _forget_content(self, gone: Callable[[], list[Content]]) -> None:
        async with self._writing:
            if content := gone():
                await asyncio.to_thread(self._database.forget_content, content)

    async def remove(self, key: EntryKey) -> Entry | None:
        """Drop an image for one handler with all of its names; give back what was dropped."""
        return await uninterrupted(self._remove(key))

    async def _add(self, entry: Entry, facts: Facts) -> Entry:
        async with self._writing:
            before = self._entries.get(entry.key)
            if before is not None:
                entry = msgspec.structs.replace(entry, names=_joined(before, entry))
            changed = [entry, *self._robbed(entry)]
            await asyncio.to_thread(self._database.write, changed, [], facts)
            for one in changed:
                self._remember(one)
            return entry

    def _robbed(self, entry: Entry) -> list[Entry]:
        """List the entries that lose a name to this one."""
        owners = {self._names.get((entry.handler, name), entry.key) for name in entry.names}
        losers = [self._entries[key] for key in owners - {entry.key}]
        return [
            msgspec.structs.replace(
                loser, names=tuple(name for name in loser.names if name not in entry.names)
            )
            for loser in losers
        ]

    async def _remove(self, key: EntryKey) -> Entry | None:
        async with self._writing:
            entry = self._entries.get(key)
            if entry is not None:
                await asyncio.to_thread(self._database.write, [], [key])
                self._forget(entry)
            return entry

    def _remember(self, entry: Entry) -> None:
        self.revision += 1
        if before := self._entries.get(entry.key):
            self._forget(before)
        self._entries[entry.key] = entry
        self._uses.update(entry.content)
        for name in entry.names:
            self._names[entry.handler, name] = entry.key

    def _forget(self, entry: Entry) -> None:
        self.revision += 1
        del self._entries[entry.key]
        self._uses.subtract(entry.content)
        for name in entry.names:
            if self._names.get((entry.handler, name)) == entry.key:
                del self._names[entry.handler, name]


def _joined(before: Entry, entry: Entry) -> tuple[str, ...]:
    """Join old names and new ones.

    An index can change with every pull and still be the same image: of the digests only the latest
    are kept, so that what lists images stays bounded.
    """
    names = list(dict.fromkeys((*before.names, *entry.names)))
    digests = [name for name in names if "@" in name]
    forgotten = set(digests[:-_DIGEST_LIMIT]) - set(entry.names)
    return tuple(name for name in names if name not in forgotten)
