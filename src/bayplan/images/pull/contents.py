"""The content fetcher: downloads and unpacks content into the store, with progress.

Stored content is used only for a repository that has it (`bayplan.images.store.database`); another
repository has to send it. Two pulls of one blob of one repository, or of one snapshot of the same
blobs, share the work. A pull leases content before it uses it. The partial download of a failed
pull is resumed by the next one.
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

from bayplan.images.handlers import RuntimeHandler
from bayplan.images.layers.streams import UnpackLimits
from bayplan.images.layers.unpack import LayerJob, check_content, content_digest, unpack
from bayplan.images.platforms import Platform, describe_platforms
from bayplan.images.registry.client import ManifestDocument, PullSource, RegistryClient
from bayplan.images.registry.errors import (
    IntegrityError,
    PlatformError,
    StorageFullError,
    storage_error,
)
from bayplan.images.registry.manifests import OCI_MANIFEST, Descriptor
from bayplan.images.singleflight import SingleFlight, uninterrupted
from bayplan.images.store.content import Ingest
from bayplan.images.store.database import ContentKind, ContentRef
from bayplan.images.store.layout import delete
from bayplan.images.store.store import ContentLease, ImageStore


class PullPhase(enum.StrEnum):
    """The phase of a blob in a pull."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"
    DONE = "done"


class PullProgress(msgspec.Struct, frozen=True):
    """The progress of a layer or config."""

    digest: str
    phase: PullPhase
    done: int = 0
    total: int = 0


ProgressListener = Callable[[PullProgress], None]


def ignore(_progress: PullProgress) -> None:
    """Ignore progress."""


class ImagePull(msgspec.Struct, frozen=True):
    """The pull of an image for a handler."""

    source: PullSource
    handler: RuntimeHandler
    listener: ProgressListener = ignore

    @property
    def name(self) -> str:
        """The image and the handler, for errors."""
        wanted = self.handler.matcher.platform
        return f"{self.source.reference} for runtime handler {self.handler.name!r} ({wanted})"

    def no_match(self, offered: list[Platform]) -> PlatformError:
        """Return the error of an image without a manifest for the handler."""
        matcher = self.handler.matcher
        mode = f" under {matcher.isolation} isolation" if matcher.platform.os == "windows" else ""
        return PlatformError(f"no manifest matches{mode}; available: {describe_platforms(offered)}")


_UNPACKERS = 4
_Result = TypeVar("_Result")


class ContentFetcher:
    """Fetches manifests and blobs from registries into a store, and unpacks layers."""

    def __init__(
        self, store: ImageStore, registry: RegistryClient, downloads: int, limits: UnpackLimits
    ) -> None:
        self._store = store
        self._registry = registry
        self._limits = limits
        self._flights: SingleFlight[tuple[ContentRef, object]] = SingleFlight()
        self._slots = asyncio.Semaphore(downloads)
        self._threads = ThreadPoolExecutor(_UNPACKERS, thread_name_prefix="unpack")

    def close(self) -> None:
        """Wait for the threads to end."""
        self._threads.shutdown()

    async def document(
        self, source: PullSource, target: str, lease: ContentLease
    ) -> ManifestDocument:
        """Return a manifest or index, from the store if it is there."""
        blob = ContentRef(ContentKind.BLOB, target)
        lease.add(blob)
        repository, known = source.reference.repository, self._store.provenance
        if self._store.has(blob) and known.is_proved(target, repository):
            return ManifestDocument(target, "", self._store.content.read(target))
        document = await self._registry.document(source, target)
        blob = ContentRef(ContentKind.BLOB, document.digest)
        lease.add(blob)
        size = len(document.data)
        self._store.content.put(Descriptor(OCI_MANIFEST, document.digest, size), document.data)
        known.prove(document.digest, repository)
        return document

    async def blob(
        self,
        source: PullSource,
        descriptor: Descriptor,
        lease: ContentLease,
        listener: ProgressListener,
    ) -> None:
        """Download a config or layer into the store, if necessary."""
        blob = ContentRef(ContentKind.BLOB, descriptor.digest)
        lease.add(blob)
        if not await self._is_stored(source, blob):
            listener(PullProgress(descriptor.digest, PullPhase.WAITING, 0, descriptor.size))
            work = lambda: self._download(source, descriptor, listener)  # noqa: E731
            await self._flights.run((blob, source.reference.repository), work)
        if self._store.content.size(descriptor.digest) != descriptor.size:
            raise IntegrityError(f"{descriptor.digest} is not of {descriptor.size} bytes")
        listener(PullProgress(descriptor.digest, PullPhase.DONE, descriptor.size, descriptor.size))

    async def _is_stored(self, source: PullSource, blob: ContentRef) -> bool:
        """Return whether a blob is stored and the source's repository has it."""
        known, repository = self._store.provenance, source.reference.repository
        if not self._store.has(blob):
            return False
        if not known.is_proved(blob.digest, repository):
            # A registry is believed only about blobs that it has sent before.
            sent = known.is_known_to(blob.digest, repository.registry)
            if not sent or not await self._registry.holds(source, blob.digest):
                return False
            known.prove(blob.digest, repository)
        return self._store.has(blob)

    async def _download(
        self, source: PullSource, descriptor: Descriptor, listener: ProgressListener
    ) -> None:
        def report(received: int) -> None:
            digest, size = descriptor.digest, descriptor.size
            listener(PullProgress(digest, PullPhase.DOWNLOADING, received, size))

        store, repository = self._store, source.reference.repository
        async with self._slots:
            with store.partials.receiving(descriptor.digest, repository) as path:
                try:
                    await self._receive(source, descriptor, Ingest(path, descriptor, report))
                except OSError as error:
                    kind = storage_error(error)
                    raise kind(f"cannot keep {descriptor.digest}: {error}") from error
            store.provenance.prove(descriptor.digest, repository)

    async def _receive(self, source: PullSource, descriptor: Descriptor, ingest: Ingest) -> None:
        try:
            await uninterrupted(asyncio.to_thread(ingest.resume))
            await self._ensure_space(descriptor, descriptor.size - ingest.received)
            await self._registry.blob(source, descriptor, ingest)
            self._store.content.link(ingest, descriptor.digest)
        except IntegrityError:
            ingest.discard()
            raise
        finally:
            ingest.close()

    async def _ensure_space(self, descriptor: Descriptor, wanted: int) -> None:
        """Raise StorageFullError if a blob does not fit on the disk."""
        if wanted > (free := self._free()):
            await self._store.trim(everything=True)
            free = self._free()
        if wanted > free:
            raise StorageFullError(f"{descriptor.digest} needs {wanted} bytes, the disk has {free}")

    def _free(self) -> int:
        return shutil.disk_usage(self._store.layout.root).free

    async def snapshot(
        self, chain_id: str, layer: Descriptor, job: LayerJob, lease: ContentLease
    ) -> None:
        """Unpack a layer on top of its parent snapshot, if necessary.

        A stored snapshot is used only if the layer's blob has its diff id: an image can claim any
        diff id for its layers.
        """
        snapshot = ContentRef(ContentKind.SNAPSHOT, chain_id)
        lease.add(snapshot)
        if not self._store.has(snapshot):
            work = lambda: self._unpack(chain_id, layer.digest, job)  # noqa: E731
            await self._flights.run((snapshot, layer.digest), work)
        elif self._store.provenance.content_of(layer.digest) is None:
            blob = ContentRef(ContentKind.BLOB, layer.digest)
            await self._flights.run(
                (blob, "content"), lambda: self._compute_diff_id(layer.digest, job)
            )
        check_content(self._store.provenance.content_of(layer.digest) or "nothing", job.diff_id)

    def layer_job(self, layer: Descriptor, diff_id: str, parent: str | None) -> LayerJob:
        """Return the unpack job of a layer whose blob is in the store."""
        below = self._store.snapshots.path(parent) if parent else None
        blob = self._store.content.path(layer.digest)
        return LayerJob(blob, diff_id, below, self._store.layout.scratch(), self._limits)

    async def _compute_diff_id(self, digest: str, job: LayerJob) -> None:
        """Compute and record the diff id of a layer, without unpacking it."""
        content = await self._in_thread(partial(content_digest, job.blob, job.limits))
        self._store.provenance.unpacks_to(digest, content)

    async def _unpack(self, chain_id: str, digest: str, job: LayerJob) -> None:
        job.target.mkdir(mode=0o755)
        try:
            usage = await self._in_thread(partial(unpack, job))
            if not self._store.snapshots.has(chain_id):
                self._store.snapshots.keep(job.target, chain_id, usage)
            self._store.provenance.unpacks_to(digest, job.diff_id)
        finally:
            await asyncio.to_thread(delete, job.target)

    async def _in_thread(self, work: Callable[[threading.Event], _Result]) -> _Result:
        """Work in a thread; on cancellation set its stop event and wait for its end."""
        stop = threading.Event()
        running = asyncio.get_running_loop().run_in_executor(self._threads, work, stop)
        try:
            return await asyncio.shield(running)
        finally:
            stop.set()
            await asyncio.wait([running])
