"""Bringing content into the store: once each, a few at a time, whoever asks.

Two pulls that need one blob or one chain share the work. What a pull relies on it holds first, so
that no removal takes it away in between.
"""

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

from bayplan.images.flights import Flights
from bayplan.images.layers.limits import Limits
from bayplan.images.layers.unpack import LayerJob, unpack
from bayplan.images.pull.progress import Listener, Phase, PullProgress
from bayplan.images.registry.client import Document, RegistryClient, Source
from bayplan.images.registry.errors import IntegrityError, StorageFullError, storage_error
from bayplan.images.registry.media import OCI_MANIFEST, Descriptor
from bayplan.images.store.entries import Content, Kind
from bayplan.images.store.layout import delete
from bayplan.images.store.store import Hold, ImageStore

_UNPACKERS = 4


class Contents:
    """The store's supply, from registries."""

    def __init__(
        self, store: ImageStore, registry: RegistryClient, downloads: int, limits: Limits
    ) -> None:
        self._store = store
        self._registry = registry
        self._limits = limits
        self._flights: Flights[Content] = Flights()
        self._slots = asyncio.Semaphore(downloads)
        self._threads = ThreadPoolExecutor(_UNPACKERS, thread_name_prefix="unpack")

    def close(self) -> None:
        """Wait for the threads to end."""
        self._threads.shutdown()

    async def document(self, source: Source, target: str, hold: Hold) -> Document:
        """Get a manifest or index, from the store if it is there."""
        blob = Content(Kind.BLOB, target)
        hold.add(blob)
        if self._store.has(blob):
            return Document(target, "", self._store.content.read(target))
        document = await self._registry.document(source, target)
        blob = Content(Kind.BLOB, document.digest)
        hold.add(blob)
        size = len(document.data)
        self._store.content.put(Descriptor(OCI_MANIFEST, document.digest, size), document.data)
        return document

    async def blob(
        self, source: Source, descriptor: Descriptor, hold: Hold, listener: Listener
    ) -> None:
        """Get a config or layer into the store."""
        blob = Content(Kind.BLOB, descriptor.digest)
        hold.add(blob)
        if not self._store.has(blob):
            listener(PullProgress(descriptor.digest, Phase.WAITING, 0, descriptor.size))
            work = lambda: self._download(source, descriptor, listener)  # noqa: E731
            await self._flights.run(blob, work)
        if self._store.content.size(descriptor.digest) != descriptor.size:
            raise IntegrityError(f"{descriptor.digest} is not of {descriptor.size} bytes")
        listener(PullProgress(descriptor.digest, Phase.DONE, descriptor.size, descriptor.size))

    async def _download(self, source: Source, descriptor: Descriptor, listener: Listener) -> None:
        def heard(received: int) -> None:
            digest, size = descriptor.digest, descriptor.size
            listener(PullProgress(digest, Phase.DOWNLOADING, received, size))

        async with self._slots:
            self._check_room(descriptor)
            ingest = self._store.content.ingest(descriptor, heard)
            try:
                await self._registry.blob(source, descriptor, ingest)
                self._store.content.keep(ingest, descriptor.digest)
            except BaseException as error:
                ingest.discard()
                if isinstance(error, OSError):
                    kind = storage_error(error)
                    raise kind(f"cannot keep {descriptor.digest}: {error}") from error
                raise

    def _check_room(self, descriptor: Descriptor) -> None:
        """Refuse what cannot fit before it fills the disk for everybody else."""
        free = shutil.disk_usage(self._store.layout.root).free
        if descriptor.size > free:
            raise StorageFullError(
                f"{descriptor.digest} needs {descriptor.size} bytes, the disk has {free}"
            )

    async def chain(self, chain_id: str, job: LayerJob, hold: Hold) -> None:
        """Get a layer unpacked on top of the chain below it."""
        chain = Content(Kind.CHAIN, chain_id)
        hold.add(chain)
        if not self._store.has(chain):
            await self._flights.run(chain, lambda: self._unpack(chain_id, job))

    def layer_job(self, layer: Descriptor, diff_id: str, parent: str | None) -> LayerJob:
        """Describe the unpacking of a layer whose blob is in the store."""
        below = self._store.chains.path(parent) if parent else None
        blob = self._store.content.path(layer.digest)
        return LayerJob(blob, diff_id, below, self._store.layout.scratch(), self._limits)

    async def _unpack(self, chain_id: str, job: LayerJob) -> None:
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        job.target.mkdir(mode=0o755)
        work = loop.run_in_executor(self._threads, unpack, job, stop)
        try:
            usage = await asyncio.shield(work)
            self._store.chains.keep(job.target, chain_id, usage)
        except BaseException:
            # A thread cannot be cancelled; it is told, and cleaned up after once it has ended.
            stop.set()
            await asyncio.wait([work])
            await asyncio.to_thread(delete, job.target)
            raise
