"""The image service: what each RPC means.

An entry is an image for one handler. A request's empty handler is the default one, and entries of
the default handler are spoken of with an empty handler, as before there were any. A handler that
is not configured is refused, unless it still owns entries that somebody wants to see or remove. An
entry whose handler's platform was changed in the configuration since is listed, so that it can be
collected, but its status is "not there", so that the right image is pulled.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri.convert import to_image, to_info, to_login
from bayplan.images.cri.metrics import Metrics
from bayplan.images.cri.watching import Watchers
from bayplan.images.handlers import UnknownHandlerError
from bayplan.images.pull.puller import Puller
from bayplan.images.pull.request import Pull
from bayplan.images.registry.client import Source
from bayplan.images.registry.errors import MalformedReferenceError, image_to_pull
from bayplan.images.settings import Settings
from bayplan.images.store.entries import Entry, EntryKey
from bayplan.images.store.store import ImageStore

_STREAM_BATCH = 200


class Images:
    """Answers CRI v1's ImageService from a store."""

    def __init__(
        self,
        settings: Settings,
        store: ImageStore,
        puller: Puller,
        metrics: Metrics,
        watchers: Watchers,
    ) -> None:
        self._settings = settings
        self._store = store
        self._puller = puller
        self._metrics = metrics
        self._watchers = watchers
        self._clock: Callable[[], int] = time.time_ns
        # Clients ask for everything again and again, while little changes.
        self._whole_list = (-1, cri.ListImagesResponse())
        self._described: dict[EntryKey, tuple[Entry, cri.Image]] = {}

    async def list_images(self, request: cri.ListImagesRequest) -> cri.ListImagesResponse:
        """List entries of every handler, or those a filter names."""
        wanted = request.filter.image
        if wanted.image or wanted.runtime_handler:
            return cri.ListImagesResponse(images=self._list(wanted))
        revision = self._store.catalogue.revision
        if self._whole_list[0] != revision:
            self._whole_list = (revision, cri.ListImagesResponse(images=self._list(wanted)))
        return self._whole_list[1]

    async def stream_images(
        self, request: cri.StreamImagesRequest
    ) -> AsyncIterator[cri.StreamImagesResponse]:
        """List in batches."""
        images = self._list(request.filter.image)
        for start in range(0, len(images), _STREAM_BATCH):
            yield cri.StreamImagesResponse(images=images[start : start + _STREAM_BATCH])

    async def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        """Look an image up for a handler."""
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
        with self._watchers.watched(str(reference), handler.name) as listener:
            pull = Pull(Source(reference, login), handler, listener)
            with self._metrics.pull(handler.name):
                entry = await self._puller.pull(pull)
        return cri.PullImageResponse(image_ref=entry.image_id)

    async def remove_image(self, request: cri.RemoveImageRequest) -> cri.RemoveImageResponse:
        """Remove an image for a handler, with all of its names; fine if there is none."""
        entry = self._find(request.image)
        if entry is not None:
            await self._store.remove(entry.key)
            self._described.pop(entry.key, None)
        return cri.RemoveImageResponse()

    async def image_fs_info(self, _request: cri.ImageFsInfoRequest) -> cri.ImageFsInfoResponse:
        """Say what the store occupies."""
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

    def _find(self, spec: cri.ImageSpec) -> Entry | None:
        return self._store.catalogue.find(self._owner(spec), _named(spec))

    def _owner(self, spec: cri.ImageSpec) -> str:
        """Name the handler a request is about."""
        try:
            return self._settings.handlers.get(spec.runtime_handler).name
        except UnknownHandlerError:
            if spec.runtime_handler in self._store.catalogue.handlers():
                return spec.runtime_handler
            raise

    def _owners(self) -> list[str]:
        names = self._settings.handlers.names()
        return [*names, *sorted(self._store.catalogue.handlers() - set(names))]

    def _still_fits(self, entry: Entry) -> bool:
        try:
            handler = self._settings.handlers.get(entry.handler)
        except UnknownHandlerError:
            return True
        return handler.matcher.matches(entry.platform)

    def _describe(self, entry: Entry) -> cri.Image:
        known, image = self._described.get(entry.key, (None, None))
        if known is not entry or image is None:
            pinned = not self._settings.pinned.isdisjoint(entry.names)
            spoken = self._settings.handlers.spoken(entry.handler)
            image = to_image(entry, spoken, pinned=pinned)
            self._described[entry.key] = (entry, image)
        return image

    def _config(self, entry: Entry) -> bytes:
        return self._store.content.read(entry.image_id)


def _named(spec: cri.ImageSpec) -> str:
    if not spec.image:
        raise MalformedReferenceError("the request names no image")
    return spec.image
