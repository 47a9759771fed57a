"""The image store: catalogue, content, snapshots and partial downloads.

Flushing a filesystem costs the same for one pull as for ten. Pulls that wait while a flush has not
started share it; later ones need the next flush, since their content may have been written after
the first began.

When it is opened, temporary files are deleted, images with missing content are dropped, and unused
content is deleted; partial downloads stay within their limits. Content is removed with the last
image that uses it, unless a running pull has a lease on it: a pull leases content before it checks
whether it is present. The content's metadata (`bayplan.images.store.database`) is deleted with it.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bayplan.images.layers.unpack import StoreUsage
from bayplan.images.singleflight import uninterrupted
from bayplan.images.store.catalogue import Catalogue
from bayplan.images.store.content import ContentStore, SnapshotStore
from bayplan.images.store.database import (
    CatalogueDatabase,
    ContentKind,
    ContentMetadata,
    ContentRef,
    Provenance,
    StoredImage,
    StoredImageKey,
)
from bayplan.images.store.layout import PartialDownloadLimits, PartialDownloads, StoreLayout, delete


class Barrier:
    """Runs one flush at a time, shared by all that wait for it."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._flushing = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def passed(self) -> None:
        """Return when everything written before this call is flushed to disk."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._run())
        await uninterrupted(self._next)

    async def _run(self) -> None:
        async with self._flushing:
            self._next = None
            await asyncio.to_thread(self._flush)


_LOG = logging.getLogger(__name__)
_BLOCK = 512
DEFAULT_PARTIAL_LIMITS = PartialDownloadLimits()


class ImageStore:
    """The image store in one root directory."""

    def __init__(
        self,
        root: Path,
        partial_limits: PartialDownloadLimits = DEFAULT_PARTIAL_LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.layout = StoreLayout(root).open()
        self.partials = PartialDownloads(self.layout, partial_limits, clock)
        try:
            self._open()
        except BaseException:
            self.layout.close()
            raise

    def _open(self) -> None:
        for leftover in self.layout.ingest.iterdir():
            delete(leftover)
        self._database = CatalogueDatabase(self.layout.database)
        self.content = ContentStore(self.layout)
        self.snapshots = SnapshotStore(self.layout, self._database.chains())
        self.provenance = Provenance(self._database.sources(), self._database.contents())
        self.catalogue = Catalogue(self._database, self._complete_images())
        self._leased: Counter[ContentRef] = Counter()
        self._barrier = Barrier(self.layout.flush)
        self._delete_unused()

    def close(self) -> None:
        """Close the database and release the lock."""
        self._database.close()
        self.layout.close()

    def has(self, content: ContentRef) -> bool:
        """Return whether complete content is stored."""
        if content.kind is ContentKind.BLOB:
            return self.content.has(content.digest)
        return self.snapshots.has(content.digest)

    @contextlib.contextmanager
    def lease(self) -> Iterator["ContentLease"]:
        """Yield a lease, which keeps its content from being removed."""
        lease = ContentLease(self._leased)
        try:
            yield lease
        finally:
            lease.release()

    async def add(self, entry: StoredImage) -> StoredImage:
        """Add an image: flush all of its content first, then write one transaction."""
        await self._barrier.passed()
        usages = self.snapshots.usages()
        facts = ContentMetadata(
            {chain: usages[chain] for chain in entry.chains},
            self.provenance.source_rows(entry.blobs),
            self.provenance.contents(entry.blobs),
        )
        return await self.catalogue.add(entry, facts)

    async def remove(self, key: StoredImageKey) -> bool:
        """Remove an image of one handler, and the content that no other image uses."""
        entry = await self.catalogue.remove(key)
        if entry is not None:
            await self.collect(entry.content)
        return entry is not None

    async def collect(self, candidates: Iterable[ContentRef]) -> None:
        """Remove the content that no image uses and no pull leases."""
        # Snapshots first, the uppermost before their parents.
        unused = [one for one in candidates if not self._is_needed(one) and self.has(one)]
        trash = [path for one in reversed(unused) if (path := self._take_out(one))]
        if trash:
            await uninterrupted(asyncio.to_thread(_delete_all, trash))
            await self.catalogue.forget_content(
                lambda: [one for one in unused if not self.has(one)]
            )

    async def trim(self, *, everything: bool = False) -> None:
        """Delete partial downloads over the limits, or all that are not being written."""
        if trash := self.partials.trim(everything=everything):
            await uninterrupted(asyncio.to_thread(_delete_all, trash))

    def usage(self) -> StoreUsage:
        """Return the disk usage of the store."""
        layout = self.layout
        places = [layout.root, layout.blobs, layout.chains, layout.partial, layout.ingest]
        files = [path for path in self.layout.root.iterdir() if path.is_file()]
        work = [path for path in self.layout.ingest.iterdir() if path.is_file()]
        total = self.content.usage() + self.snapshots.usage() + self.partials.usage()
        for path in (*places, *files, *work):
            with contextlib.suppress(FileNotFoundError):
                total += StoreUsage(path.lstat().st_blocks * _BLOCK, 1)
        return total

    def _is_needed(self, content: ContentRef) -> bool:
        return self.catalogue.uses(content) or self._leased[content] > 0

    def _take_out(self, content: ContentRef) -> Path | None:
        if content.kind is ContentKind.BLOB:
            self.provenance.forget(content.digest)
            return self.content.remove(content.digest)
        return self.snapshots.remove(content.digest)

    def _complete_images(self) -> list[StoredImage]:
        entries = self._database.entries()
        complete = [entry for entry in entries if all(map(self.has, entry.content))]
        broken = [entry for entry in entries if entry not in complete]
        for entry in broken:
            _LOG.warning(
                "dropping image with missing content: %s of handler %r",
                entry.image_id,
                entry.handler,
            )
        self._database.write([], [entry.key for entry in broken])
        return complete

    def _delete_unused(self) -> None:
        started = time.monotonic()
        everything = [ContentRef(ContentKind.BLOB, digest) for digest in self.content.digests()]
        everything += [ContentRef(ContentKind.SNAPSHOT, chain) for chain in self.snapshots.usages()]
        unused = [one for one in everything if not self.catalogue.uses(one)]
        _delete_all([path for one in unused if (path := self._take_out(one))])
        described = self._database.described()
        self._database.forget_content([one for one in described if not self.has(one)])
        self.partials.drop(self.content.has)
        _delete_all(self.partials.trim())
        if unused:
            _LOG.info(
                "deleted %d unused blobs and snapshots in %.1f s",
                len(unused),
                time.monotonic() - started,
            )


class ContentLease:
    """The content that one pull uses, which is not removed meanwhile."""

    def __init__(self, held: Counter[ContentRef]) -> None:
        self._leased = held
        self._own: list[ContentRef] = []

    @property
    def content(self) -> list[ContentRef]:
        """All leased content."""
        return list(self._own)

    def add(self, content: ContentRef) -> None:
        """Lease more content."""
        self._leased[content] += 1
        self._own.append(content)

    def release(self) -> None:
        """Release all content."""
        self._leased.subtract(self._own)
        self._own = []


def _delete_all(paths: list[Path]) -> None:
    for path in paths:
        try:
            delete(path)
        except OSError as error:
            # It is out of the store already; the next start deletes it.
            _LOG.warning("cannot delete %s: %s", path, error)
