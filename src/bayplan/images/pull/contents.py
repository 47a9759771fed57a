"""Bringing content into the store: once each, a few at a time, and how far that has come.

Content that is here is used only for a repository that has it (`bayplan.images.store.database`);
any other delivers it as if it were not here. Two pulls that need one blob of one repository, or one
chain of the same blobs, share the work. What a pull relies on it holds first, so that no removal
takes it away in between. What a failed pull had received of a blob is left to the next one.
"""

import asyncio
import enum
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from bayplan.images.flights import Flights, uninterrupted
from bayplan.images.handlers import Handler
from bayplan.images.layers.streams import Limits
from bayplan.images.layers.unpack import LayerJob, check_content, content_digest, unpack
from bayplan.images.platforms import Platform, describe
from bayplan.images.registry.client import Document, RegistryClient, Source
from bayplan.images.registry.errors import (
    IntegrityError,
    PlatformError,
    StorageFullError,
    storage_error,
)
from bayplan.images.registry.media import OCI_MANIFEST, Descriptor
from bayplan.images.store.content import Ingest
from bayplan.images.store.database import Content, Kind
from bayplan.images.store.layout import delete
from bayplan.images.store.store import Hold, ImageStore


class Phase(enum.StrEnum):
    """What is happening to a piece of content."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"
    DONE = "done"


class PullProgress(msgspec.Struct, frozen=True):
    """One step of one layer or config."""

    digest: str
    phase: Phase
    done: int = 0
    total: int = 0


Listener = Callable[[PullProgress], None]


def ignore(_progress: PullProgress) -> None:
    """Draw nothing."""


class Pull(msgspec.Struct, frozen=True):
    """One image for one handler."""

    source: Source
    handler: Handler
    listener: Listener = ignore

    @property
    def name(self) -> str:
        """The image and the handler, as errors name them."""
        wanted = self.handler.matcher.platform
        return f"{self.source.reference} for runtime handler {self.handler.name!r} ({wanted})"

    def nothing_fits(self, offered: list[Platform]) -> PlatformError:
        """Say that an image has nothing for the handler, and what it has."""
        matcher = self.handler.matcher
        mode = f" under {matcher.isolation} isolation" if matcher.platform.os == "windows" else ""
        return PlatformError(f"no manifest matches{mode}; on offer: {describe(offered)}")


_UNPACKERS = 4
_Result = TypeVar("_Result")


class Contents:
    """The store's supply, from registries."""

    def __init__(
        self, store: ImageStore, registry: RegistryClient, downloads: int, limits: Limits
    ) -> None:
        self._store = store
        self._registry = registry
        self._limits = limits
        self._flights: Flights[tuple[Content, object]] = Flights()
        self._slots = asyncio.Semaphore(downloads)
        self._threads = ThreadPoolExecutor(_UNPACKERS, thread_name_prefix="unpack")

    def close(self) -> None:
        """Wait for the threads to end."""
        self._threads.shutdown()

    async def document(self, source: Source, target: str, hold: Hold) -> Document:
        """Get a manifest or index, from the store if it is there."""
        blob = Content(Kind.BLOB, target)
        hold.add(blob)
        home, known = source.reference.repository, self._store.provenance
        if self._store.has(blob) and known.is_proved(target, home):
            return Document(target, "", self._store.content.read(target))
        document = await self._registry.document(source, target)
        blob = Content(Kind.BLOB, document.digest)
        hold.add(blob)
        size = len(document.data)
        self._store.content.put(Descriptor(OCI_MANIFEST, document.digest, size), document.data)
        known.prove(document.digest, home)
        return document

    async def blob(
        self, source: Source, descriptor: Descriptor, hold: Hold, listener: Listener
    ) -> None:
        """Get a config or layer into the store."""
        blob = Content(Kind.BLOB, descriptor.digest)
        hold.add(blob)
        if not await self._at_hand(source, blob):
            listener(PullProgress(descriptor.digest, Phase.WAITING, 0, descriptor.size))
            work = lambda: self._download(source, descriptor, listener)  # noqa: E731
            await self._flights.run((blob, source.reference.repository), work)
        if self._store.content.size(descriptor.digest) != descriptor.size:
            raise IntegrityError(f"{descriptor.digest} is not of {descriptor.size} bytes")
        listener(PullProgress(descriptor.digest, Phase.DONE, descriptor.size, descriptor.size))

    async def _at_hand(self, source: Source, blob: Content) -> bool:
        """Say whether a blob is here, and the source's repository has it too."""
        known, home = self._store.provenance, source.reference.repository
        if not self._store.has(blob):
            return False
        if not known.is_proved(blob.digest, home):
            # What a registry once sent it can be asked about; of all else it could tell anything.
            sent = known.is_known_to(blob.digest, home.registry)
            if not sent or not await self._registry.holds(source, blob.digest):
                return False
            known.prove(blob.digest, home)
        return self._store.has(blob)

    async def _download(self, source: Source, descriptor: Descriptor, listener: Listener) -> None:
        def heard(received: int) -> None:
            digest, size = descriptor.digest, descriptor.size
            listener(PullProgress(digest, Phase.DOWNLOADING, received, size))

        store, home = self._store, source.reference.repository
        async with self._slots:
            with store.partials.receiving(descriptor.digest, home) as path:
                try:
                    await self._receive(source, descriptor, Ingest(path, descriptor, heard))
                except OSError as error:
                    kind = storage_error(error)
                    raise kind(f"cannot keep {descriptor.digest}: {error}") from error
            store.provenance.prove(descriptor.digest, home)

    async def _receive(self, source: Source, descriptor: Descriptor, ingest: Ingest) -> None:
        try:
            await uninterrupted(asyncio.to_thread(ingest.resume))
            await self._make_room(descriptor, descriptor.size - ingest.received)
            await self._registry.blob(source, descriptor, ingest)
            self._store.content.keep_also(ingest, descriptor.digest)
        except IntegrityError:
            ingest.discard()
            raise
        finally:
            ingest.close()

    async def _make_room(self, descriptor: Descriptor, wanted: int) -> None:
        """Refuse what cannot fit before it fills the disk for everybody else."""
        if wanted > (free := self._free()):
            await self._store.trim(everything=True)
            free = self._free()
        if wanted > free:
            raise StorageFullError(f"{descriptor.digest} needs {wanted} bytes, the disk has {free}")

    def _free(self) -> int:
        return shutil.disk_usage(self._store.layout.root).free

    async def chain(self, chain_id: str, layer: Descriptor, job: LayerJob, hold: Hold) -> None:
        """Get a layer unpacked on top of the chain below it.

        A chain that is here is used only if the layer truly is what the chain was made of: an
        image can claim any content for its layers.
        """
        chain = Content(Kind.CHAIN, chain_id)
        hold.add(chain)
        if not self._store.has(chain):
            work = lambda: self._unpack(chain_id, layer.digest, job)  # noqa: E731
            await self._flights.run((chain, layer.digest), work)
        elif self._store.provenance.content_of(layer.digest) is None:
            blob = Content(Kind.BLOB, layer.digest)
            await self._flights.run((blob, "content"), lambda: self._look_into(layer.digest, job))
        check_content(self._store.provenance.content_of(layer.digest) or "nothing", job.diff_id)

    def layer_job(self, layer: Descriptor, diff_id: str, parent: str | None) -> LayerJob:
        """Describe the unpacking of a layer whose blob is in the store."""
        below = self._store.chains.path(parent) if parent else None
        blob = self._store.content.path(layer.digest)
        return LayerJob(blob, diff_id, below, self._store.layout.scratch(), self._limits)

    async def _look_into(self, digest: str, job: LayerJob) -> None:
        """See what a layer expands to, without unpacking it."""
        content = await self._in_thread(partial(content_digest, job.blob, job.limits))
        self._store.provenance.unpacks_to(digest, content)

    async def _unpack(self, chain_id: str, digest: str, job: LayerJob) -> None:
        job.target.mkdir(mode=0o755)
        try:
            usage = await self._in_thread(partial(unpack, job))
            if not self._store.chains.has(chain_id):
                self._store.chains.keep(job.target, chain_id, usage)
            self._store.provenance.unpacks_to(digest, job.diff_id)
        finally:
            await asyncio.to_thread(delete, job.target)

    async def _in_thread(self, work: Callable[[threading.Event], _Result]) -> _Result:
        """Work in a thread; it cannot be cancelled, but is told, and has ended after this."""
        stop = threading.Event()
        running = asyncio.get_running_loop().run_in_executor(self._threads, work, stop)
        try:
            return await asyncio.shield(running)
        finally:
            stop.set()
            await asyncio.wait([running])
