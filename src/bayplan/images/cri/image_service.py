"""The CRI's ImageService, and the progress of pulls.

The CRI reports no progress, so there is a second service on the same socket: a watcher names an
image and handler, and receives every step of its pulls. A slow watcher loses steps; the pull does
not wait for it.

A stored image is for one handler. A request's empty handler is the default one, and images of the
default handler are reported with an empty handler. A handler that is not configured is refused,
unless it still has images to be listed or removed. An image whose handler has another platform in
the configuration now is listed, so that it can be collected, but its status is "not found", so that
the right image is pulled.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from weakref import WeakSet

import grpc
import msgspec

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri import progress_pb2 as progress
from bayplan.images.cri.metrics import CriMetrics
from bayplan.images.handlers import RuntimeHandlers, UnknownHandlerError
from bayplan.images.pull.contents import ImagePull, ProgressListener, PullProgress
from bayplan.images.pull.puller import RegistryPuller
from bayplan.images.registry import errors
from bayplan.images.registry.client import PullSource, RegistryLogin
from bayplan.images.registry.credentials import Keyring, RegistryCredentials, decode_auth
from bayplan.images.registry.errors import MalformedReferenceError, image_to_pull
from bayplan.images.settings import CriSettings
from bayplan.images.store.database import StoredImage, StoredImageKey
from bayplan.images.store.store import ImageStore

_LARGEST_UID = 2**63 - 1
_CODES: list[tuple[type[Exception], grpc.StatusCode]] = [
    (UnknownHandlerError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.MalformedReferenceError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.ImageNotFoundError, grpc.StatusCode.NOT_FOUND),
    (errors.PlatformError, grpc.StatusCode.NOT_FOUND),
    (errors.AuthenticationError, grpc.StatusCode.UNAUTHENTICATED),
    (errors.RegistryUnreachableError, grpc.StatusCode.UNAVAILABLE),
    (errors.IntegrityError, grpc.StatusCode.DATA_LOSS),
    (errors.StorageFullError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.PullError, grpc.StatusCode.UNKNOWN),
]


def to_image(entry: StoredImage, handler: str, *, pinned: bool) -> cri.Image:
    """Return the CRI's image of an entry; the handler has its name in the CRI."""
    user = entry.user.partition(":")[0]
    numeric = user.isascii() and user.isdigit() and int(user) <= _LARGEST_UID
    return cri.Image(
        id=entry.image_id,
        repo_tags=entry.tags,
        repo_digests=entry.digests,
        size=entry.size,
        uid=cri.Int64Value(value=int(user)) if numeric else None,
        username="" if numeric else user,
        spec=cri.ImageSpec(image=entry.image_id, runtime_handler=handler),
        pinned=pinned,
    )


def to_info(entry: StoredImage, config: bytes) -> dict[str, str]:
    """Return the verbose info of an image, as JSON."""
    details = {
        "runtimeHandler": entry.handler,
        "platform": entry.platform,
        "manifest": entry.manifest,
        "chainID": entry.chains[-1] if entry.chains else "",
        "imageSpec": msgspec.Raw(config),
    }
    return {"info": msgspec.json.encode(details).decode()}


def to_login(auth: cri.AuthConfig, keyring: Keyring[RegistryCredentials]) -> RegistryLogin:
    """Return a request's credentials."""
    username, password = auth.username, auth.password
    if auth.auth and not username:
        username, password = decode_auth(auth.auth)
    given = RegistryCredentials(username, password, auth.identity_token, auth.registry_token)
    return RegistryLogin(given or None, auth.server_address, keyring)


def to_status(error: Exception) -> tuple[grpc.StatusCode, str]:
    """Return an error's status code, and its message with the prefix that kubelets expect."""
    if isinstance(error, errors.RegistryUnreachableError):
        return grpc.StatusCode.UNAVAILABLE, f"RegistryUnavailable: {error}"
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    return grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"


_BACKLOG = 256
_Topic = tuple[str, str]


class PullWatchers:
    """The watchers of pulls, by image and handler."""

    def __init__(self, handlers: RuntimeHandlers) -> None:
        self._handlers = handlers
        self._queues: dict[_Topic, WeakSet[asyncio.Queue[PullProgress]]] = {}

    @contextlib.contextmanager
    def listener(self, image: str, handler: str) -> Iterator[ProgressListener]:
        """Yield the progress listener of a pull."""
        topic = (image, handler)

        def report(step: PullProgress) -> None:
            for queue in self._queues.get(topic, ()):
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(step)

        yield report

    def watch(self, request: progress.WatchRequest) -> AsyncIterator[progress.Step]:
        """Yield the steps of an image's pulls, from this call on."""
        handler = self._handlers.get(request.runtime_handler).name
        topic = (str(image_to_pull(request.image)), handler)
        queue: asyncio.Queue[PullProgress] = asyncio.Queue(_BACKLOG)
        self._queues.setdefault(topic, WeakSet()).add(queue)
        return self._steps(topic, queue)

    async def _steps(
        self, topic: _Topic, queue: "asyncio.Queue[PullProgress]"
    ) -> AsyncIterator[progress.Step]:
        try:
            while True:
                step = await queue.get()
                yield progress.Step(
                    digest=step.digest, phase=step.phase, done=step.done, total=step.total
                )
        finally:
            self._queues[topic].discard(queue)
            if not self._queues[topic]:
                del self._queues[topic]


_STREAM_BATCH = 200


class ImageService:
    """Implements CRI v1's ImageService with a store."""

    def __init__(
        self,
        settings: CriSettings,
        store: ImageStore,
        puller: RegistryPuller,
        metrics: CriMetrics,
        watchers: PullWatchers,
    ) -> None:
        self._settings = settings
        self._store = store
        self._puller = puller
        self._metrics = metrics
        self._watchers = watchers
        self._clock: Callable[[], int] = time.time_ns
        # Clients list everything again and again, while little changes.
        self._full_list = (-1, cri.ListImagesResponse())
        self._described: dict[StoredImageKey, tuple[StoredImage, cri.Image]] = {}

    async def list_images(self, request: cri.ListImagesRequest) -> cri.ListImagesResponse:
        """Return images of every handler, or those of a filter."""
        wanted = request.filter.image
        if wanted.image or wanted.runtime_handler:
            return cri.ListImagesResponse(images=self._list(wanted))
        revision = self._store.catalogue.revision
        if self._full_list[0] != revision:
            self._full_list = (revision, cri.ListImagesResponse(images=self._list(wanted)))
        return self._full_list[1]

    async def stream_images(
        self, request: cri.StreamImagesRequest
    ) -> AsyncIterator[cri.StreamImagesResponse]:
        """Yield the images in batches."""
        images = self._list(request.filter.image)
        for start in range(0, len(images), _STREAM_BATCH):
            yield cri.StreamImagesResponse(images=images[start : start + _STREAM_BATCH])

    async def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        """Return the status of an image for a handler."""
        entry = self._find(request.image)
        if entry is None or not self._still_fits(entry):
            return cri.ImageStatusResponse()
        info = {}
        if request.verbose:
            info = to_info(entry, await asyncio.to_thread(self._config, entry))
        return cri.ImageStatusResponse(image=self._describe(entry), info=info)

    async def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        """Pull an image for a handler."""
        handler = self._settings.handlers.get(request.image.runtime_handler)
        reference = image_to_pull(_named(request.image))
        try:
            login = to_login(request.auth, self._settings.keyring)
        except ValueError as error:
            raise MalformedReferenceError(f"{reference}: {error}") from None
        with self._watchers.listener(str(reference), handler.name) as listener:
            pull = ImagePull(PullSource(reference, login), handler, listener)
            with self._metrics.pull(handler.name):
                entry = await self._puller.pull(pull)
        return cri.PullImageResponse(image_ref=entry.image_id)

    async def remove_image(self, request: cri.RemoveImageRequest) -> cri.RemoveImageResponse:
        """Remove an image for a handler, with all of its names; no error if there is none."""
        entry = self._find(request.image)
        if entry is not None:
            await self._store.remove(entry.key)
            self._described.pop(entry.key, None)
        return cri.RemoveImageResponse()

    async def image_fs_info(self, _request: cri.ImageFsInfoRequest) -> cri.ImageFsInfoResponse:
        """Return the disk usage of the store."""
        usage = self._store.usage()
        filesystem = cri.FilesystemUsage(
            timestamp=self._clock(),
            fs_id=cri.FilesystemIdentifier(mountpoint=str(self._store.layout.root)),
            used_bytes=cri.UInt64Value(value=usage.bytes),
            inodes_used=cri.UInt64Value(value=usage.inodes),
        )
        return cri.ImageFsInfoResponse(
            image_filesystems=[filesystem], container_filesystems=[filesystem]
        )

    def _list(self, wanted: cri.ImageSpec) -> list[cri.Image]:
        if wanted.image:
            handlers = [self._owner(wanted)] if wanted.runtime_handler else self._owners()
            found = [self._store.catalogue.find(name, wanted.image) for name in handlers]
            return [self._describe(entry) for entry in found if entry is not None]
        entries = self._store.catalogue.entries()
        if wanted.runtime_handler:
            name = self._owner(wanted)
            entries = [entry for entry in entries if entry.handler == name]
        return [self._describe(entry) for entry in entries]

    def _find(self, spec: cri.ImageSpec) -> StoredImage | None:
        return self._store.catalogue.find(self._owner(spec), _named(spec))

    def _owner(self, spec: cri.ImageSpec) -> str:
        """Return the handler's name of a request."""
        try:
            return self._settings.handlers.get(spec.runtime_handler).name
        except UnknownHandlerError:
            if spec.runtime_handler in self._store.catalogue.handlers():
                return spec.runtime_handler
            raise

    def _owners(self) -> list[str]:
        names = self._settings.handlers.names()
        return [*names, *sorted(self._store.catalogue.handlers() - set(names))]

    def _still_fits(self, entry: StoredImage) -> bool:
        try:
            handler = self._settings.handlers.get(entry.handler)
        except UnknownHandlerError:
            return True
        return handler.matcher.matches(entry.platform)

    def _describe(self, entry: StoredImage) -> cri.Image:
        known, image = self._described.get(entry.key, (None, None))
        if known is not entry or image is None:
            pinned = not self._settings.pinned.isdisjoint(entry.names)
            cri_name = self._settings.handlers.cri_name(entry.handler)
            image = to_image(entry, cri_name, pinned=pinned)
            self._described[entry.key] = (entry, image)
        return image

    def _config(self, entry: StoredImage) -> bytes:
        return self._store.content.read(entry.image_id)


def _named(spec: cri.ImageSpec) -> str:
    if not spec.image:
        raise MalformedReferenceError("the request has no image")
    return spec.image
