"""The store as the puller and the service see it.

Flushing a file system costs the same for one pull as for ten. Whoever asks while a flush is still
waiting to start shares it; whoever asks later needs the next one, since its content may have come
after the first began.

Opening sweeps: what is under way when a process dies is deleted, an entry whose content is not all
there is dropped, and content that no entry needs goes; only downloads that can be continued stay,
within their bounds. While it runs, content is removed when the last entry that uses it is, except
what a pull under way holds: a pull holds what it is about to rely on before it looks whether it is
there. What is known of content (`bayplan.images.store.database`) goes with it.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bayplan.images.flights import uninterrupted
from bayplan.images.layers.unpack import Usage
from bayplan.images.store.catalogue import Catalogue
from bayplan.images.store.content import ChainStore, ContentStore
from bayplan.images.store.database import (
    Content,
    Database,
    Entry,
    EntryKey,
    Facts,
    Kind,
    Provenance,
)
from bayplan.images.store.layout import Keeping, Layout, Partials, delete


class Barrier:
    """One flush at a time, shared by those it covers."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._flushing = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def passed(self) -> None:
        """Return when everything written before this call would survive a loss of power."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._run())
        await uninterrupted(self._next)

    async def _run(self) -> None:
        async with self._flushing:
            self._next = None
            await asyncio.to_thread(self._flush)


_LOG = logging.getLogger(__name__)
_BLOCK = 512
DEFAULT_KEEPING = Keeping()


class ImageStore:
    """Content, chains and catalogue of one root directory."""

    def __init__(
        self,
        root: Path,
        keeping: Keeping = DEFAULT_KEEPING,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.layout = Layout(root).open()
        self.partials = Partials(self.layout, keeping, clock)
        try:
            self._open()
        except BaseException:
            self.layout.close()
            raise

    def _open(self) -> None:
        for leftover in self.layout.ingest.iterdir():
            delete(leftover)
        self._database = Database(self.layout.database)
        self.content = ContentStore(self.layout)
        self.chains = ChainStore(self.layout, self._database.chains())
        self.provenance = Provenance(self._database.sources(), self._database.contents())
        self.catalogue = Catalogue(self._database, self._whole_entries())
        self._held: Counter[Content] = Counter()
        self._barrier = Barrier(self.layout.flush)
        self._sweep()

    def close(self) -> None:
        """Close the database and give the directory free."""
        self._database.close()
        self.layout.close()

    def has(self, content: Content) -> bool:
        """Say whether content is here, whole."""
        if content.kind is Kind.BLOB:
            return self.content.has(content.digest)
        return self.chains.has(content.digest)

    @contextlib.contextmanager
    def hold(self) -> Iterator["Hold"]:
        """Keep content from being removed while a pull relies on it."""
        hold = Hold(self._held)
        try:
            yield hold
        finally:
            hold.release()

    async def add(self, entry: Entry) -> Entry:
        """Take an image in: all of its content durable first, then one transaction."""
        await self._barrier.passed()
        usages = self.chains.usages()
        facts = Facts(
            {chain: usages[chain] for chain in entry.chains},
            self.provenance.source_rows(entry.blobs),
            self.provenance.contents(entry.blobs),
        )
        return await self.catalogue.add(entry, facts)

    async def remove(self, key: EntryKey) -> bool:
        """Drop an image for one handler, and the content nobody else uses."""
        entry = await self.catalogue.remove(key)
        if entry is not None:
            await self.collect(entry.content)
        return entry is not None

    async def collect(self, candidates: Iterable[Content]) -> None:
        """Remove whichever of these no entry uses and no pull holds."""
        # Chains first, the uppermost before what they stand on.
        unused = [one for one in candidates if not self._needed(one) and self.has(one)]
        rubbish = [path for one in reversed(unused) if (path := self._take_out(one))]
        if rubbish:
            await uninterrupted(asyncio.to_thread(_delete_all, rubbish))
            await self.catalogue.forget_content(
                lambda: [one for one in unused if not self.has(one)]
            )

    async def trim(self, *, everything: bool = False) -> None:
        """Drop unfinished downloads that are too old or too much, or all that nobody writes."""
        if rubbish := self.partials.trim(everything=everything):
            await uninterrupted(asyncio.to_thread(_delete_all, rubbish))

    def usage(self) -> Usage:
        """Count what the store occupies on the disk."""
        layout = self.layout
        places = [layout.root, layout.blobs, layout.chains, layout.partial, layout.ingest]
        files = [path for path in self.layout.root.iterdir() if path.is_file()]
        work = [path for path in self.layout.ingest.iterdir() if path.is_file()]
        total = self.content.usage() + self.chains.usage() + self.partials.usage()
        for path in (*places, *files, *work):
            with contextlib.suppress(FileNotFoundError):
                total += Usage(path.lstat().st_blocks * _BLOCK, 1)
        return total

    def _needed(self, content: Content) -> bool:
        return self.catalogue.uses(content) or self._held[content] > 0

    def _take_out(self, content: Content) -> Path | None:
        if content.kind is Kind.BLOB:
            self.provenance.forget(content.digest)
            return self.content.remove(content.digest)
        return self.chains.remove(content.digest)

    def _whole_entries(self) -> list[Entry]:
        entries = self._database.entries()
        whole = [entry for entry in entries if all(map(self.has, entry.content))]
        broken = [entry for entry in entries if entry not in whole]
        for entry in broken:
            _LOG.warning("dropping %s for %r: content is missing", entry.image_id, entry.handler)
        self._database.write([], [entry.key for entry in broken])
        return whole

    def _sweep(self) -> None:
        started = time.monotonic()
        everything = [Content(Kind.BLOB, digest) for digest in self.content.digests()]
        everything += [Content(Kind.CHAIN, chain) for chain in self.chains.usages()]
        unused = [one for one in everything if not self.catalogue.uses(one)]
        _delete_all([path for one in unused if (path := self._take_out(one))])
        described = self._database.described()
        self._database.forget_content([one for one in described if not self.has(one)])
        self.partials.drop(self.content.has)
        _delete_all(self.partials.trim())
        if unused:
            _LOG.info("swept %d leftovers in %.1f s", len(unused), time.monotonic() - started)


class Hold:
    """What one pull relies on."""

    def __init__(self, held: Counter[Content]) -> None:
        self._held = held
        self._mine: list[Content] = []

    @property
    def content(self) -> list[Content]:
        """Everything held so far."""
        return list(self._mine)

    def add(self, content: Content) -> None:
        """Hold one more piece."""
        self._held[content] += 1
        self._mine.append(content)

    def release(self) -> None:
        """Let everything go."""
        self._held.subtract(self._mine)
        self._mine = []


def _delete_all(paths: list[Path]) -> None:
    for path in paths:
        try:
            delete(path)
        except OSError as error:
            # It is out of the store already; the next start tries again.
            _LOG.warning("cannot delete %s: %s", path, error)
