"""The pull: resolve, select a manifest, download, unpack, and then add the image to the catalogue.

An index is flattened (indexes may hold indexes, to a limited depth) and its entries are sorted by
the matcher. Entries without a platform are matched by their config, and so is an image without an
index. If nothing matches, the error lists the available platforms.

A failed pull leaves no image and no snapshots: unused content is removed again, but partial
downloads stay for the next pull of that repository. Every error has the image, the handler and its
platform.
"""

import asyncio

import msgspec

from bayplan.images.layers.streams import UnpackLimits, chain_ids
from bayplan.images.platforms import Platform, match_entries
from bayplan.images.pull.contents import ContentFetcher, ImagePull, PullPhase, PullProgress
from bayplan.images.registry.client import ManifestDocument, RegistryClient
from bayplan.images.registry.errors import IntegrityError, PullError
from bayplan.images.registry.manifests import (
    CONFIG_LIMIT,
    INDEX_TYPES,
    Descriptor,
    ImageConfig,
    ImageManifest,
    decode_config,
    decode_index,
    decode_manifest,
    document_type,
)
from bayplan.images.singleflight import uninterrupted
from bayplan.images.store.content import ContentStore
from bayplan.images.store.database import ContentRef, StoredImage
from bayplan.images.store.store import ContentLease, ImageStore

_DEPTH_LIMIT = 3
_INDEX_LIMIT = 32
_UNDECLARED_LIMIT = 16


class SelectedImage(msgspec.Struct, frozen=True):
    """The selected manifest of a handler, with its config."""

    digest: str
    manifest: ImageManifest
    config: ImageConfig
    platform: Platform  # of the index's entry, else of the config
    documents: tuple[str, ...]  # the indexes on the way, and the manifest


class ManifestSelector:
    """Selects one manifest and its config, beginning at a reference's document."""

    def __init__(
        self, fetcher: ContentFetcher, store: ContentStore, pull: ImagePull, lease: ContentLease
    ) -> None:
        self._fetcher = fetcher
        self._store = store
        self._pull = pull
        self._lease = lease
        self._indexes: list[str] = []

    async def select(self, top: ManifestDocument) -> SelectedImage:
        """Return the image for the handler."""
        kind = document_type(top.data, top.media_type, top.digest)
        if kind not in INDEX_TYPES:
            return self._select_by_config([await self._image(top)], [])
        entries = await self._flatten(top, 1)
        choice = match_entries(entries, self._pull.handler.matcher)
        if choice.matching:
            best = choice.matching[0]
            return await self._image(await self._fetch(best), best.platform)
        images = [
            await self._image(await self._fetch(entry))
            for entry in choice.undeclared[:_UNDECLARED_LIMIT]
        ]
        return self._select_by_config(images, choice.offered)

    def _select_by_config(
        self, images: list[SelectedImage], offered: list[Platform]
    ) -> SelectedImage:
        """Return the image whose config matches best."""
        matcher = self._pull.handler.matcher
        platforms = [image.platform for image in images]
        ranks = [matcher.rank(platform) for platform in platforms]
        matching = [(rank, place) for place, rank in enumerate(ranks) if rank is not None]
        if not matching:
            raise self._pull.no_match([*offered, *platforms])
        return images[min(matching)[1]]

    def _declared(self, config: ImageConfig) -> Platform:
        """Return a config's platform; empty fields are taken from the handler's."""
        wanted = self._pull.handler.matcher.platform
        return msgspec.structs.replace(
            config.platform,
            os=config.os or wanted.os,
            architecture=config.architecture or wanted.architecture,
        )

    async def _flatten(self, document: ManifestDocument, depth: int) -> list[Descriptor]:
        if depth > _DEPTH_LIMIT:
            raise IntegrityError(f"indexes are nested more than {_DEPTH_LIMIT} deep")
        self._indexes.append(document.digest)
        if len(self._indexes) > _INDEX_LIMIT:
            raise IntegrityError(f"an index of more than {_INDEX_LIMIT} indexes")
        entries: list[Descriptor] = []
        for entry in decode_index(document.data, document.digest).manifests:
            entries += await self._expand(entry, depth) if self._is_index(entry) else [entry]
        return entries

    def _is_index(self, entry: Descriptor) -> bool:
        return entry.media_type in INDEX_TYPES

    async def _expand(self, entry: Descriptor, depth: int) -> list[Descriptor]:
        platform = entry.platform
        if platform is not None and not self._pull.handler.matcher.matches(platform):
            return [entry]  # stays on the list of available platforms
        inner = await self._flatten(await self._fetch(entry), depth + 1)
        return [msgspec.structs.replace(one, platform=one.platform or platform) for one in inner]

    async def _fetch(self, entry: Descriptor) -> ManifestDocument:
        document = await self._fetcher.document(self._pull.source, entry.digest, self._lease)
        if len(document.data) != entry.size:
            raise IntegrityError(f"manifest {entry.digest} is not of {entry.size} bytes")
        kind = document_type(document.data, document.media_type, document.digest)
        if (kind in INDEX_TYPES) != self._is_index(entry):
            raise IntegrityError(f"{entry.digest} is {kind!r}, in its index {entry.media_type!r}")
        return document

    async def _image(
        self, document: ManifestDocument, platform: Platform | None = None
    ) -> SelectedImage:
        manifest = decode_manifest(document.data, document.digest)
        if manifest.config.size > CONFIG_LIMIT:
            raise IntegrityError(f"config {manifest.config.digest} is over {CONFIG_LIMIT} bytes")
        pull = self._pull
        await self._fetcher.blob(pull.source, manifest.config, self._lease, pull.listener)
        config = decode_config(self._store.read(manifest.config.digest), manifest)
        documents = tuple(dict.fromkeys((*self._indexes, document.digest)))
        platform = platform or self._declared(config)
        return SelectedImage(document.digest, manifest, config, platform, documents)


class RegistryPuller:
    """Pulls images from registries into a store."""

    def __init__(
        self,
        store: ImageStore,
        registry: RegistryClient,
        downloads: int = 3,
        limits: UnpackLimits | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._fetcher = ContentFetcher(store, registry, downloads, limits or UnpackLimits())

    def close(self) -> None:
        """Wait for running work."""
        self._fetcher.close()

    async def pull(self, pull: ImagePull) -> StoredImage:
        """Pull an image for a handler; it is complete when this returns."""
        with self._store.lease() as lease:
            try:
                return await self._pull(pull, lease)
            except BaseException as error:
                content = lease.content
                lease.release()
                await uninterrupted(self._clean_up(content))
                if isinstance(error, PullError):
                    raise type(error)(f"{pull.name}: {_full_message(error)}") from error
                raise

    async def _clean_up(self, content: list[ContentRef]) -> None:
        await self._store.collect(content)
        await self._store.trim()

    async def _pull(self, pull: ImagePull, lease: ContentLease) -> StoredImage:
        reference = pull.source.reference
        target = await self._registry.resolve(pull.source) or reference.target
        top = await self._fetcher.document(pull.source, target, lease)
        selected = await ManifestSelector(self._fetcher, self._store.content, pull, lease).select(
            top
        )
        chains = chain_ids(selected.config.diff_ids)
        await self._layers(pull, selected, chains, lease)
        names = dict.fromkeys((str(reference), f"{reference.repository}@{top.digest}"))
        entry = await self._store.add(_entry(pull, selected, chains, tuple(names)))
        self._store.partials.finished(entry.blobs, reference.repository)
        return entry

    async def _layers(
        self, pull: ImagePull, selected: SelectedImage, chains: list[str], lease: ContentLease
    ) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                downloads = [
                    group.create_task(self._fetcher.blob(pull.source, layer, lease, pull.listener))
                    for layer in selected.manifest.layers
                ]
                await self._unpack(pull, selected, chains, lease, downloads)
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors

    async def _unpack(
        self,
        pull: ImagePull,
        selected: SelectedImage,
        chains: list[str],
        lease: ContentLease,
        downloads: "list[asyncio.Task[None]]",
    ) -> None:
        """Unpack each layer as soon as its blob and its parent snapshot are there."""
        parent = None
        layers = zip(
            selected.manifest.layers, selected.config.diff_ids, chains, downloads, strict=True
        )
        for layer, diff_id, chain_id, download in layers:
            await download
            pull.listener(PullProgress(layer.digest, PullPhase.UNPACKING, layer.size, layer.size))
            job = self._fetcher.layer_job(layer, diff_id, parent)
            await self._fetcher.snapshot(chain_id, layer, job, lease)
            pull.listener(PullProgress(layer.digest, PullPhase.DONE, layer.size, layer.size))
            parent = chain_id


def _entry(
    pull: ImagePull, selected: SelectedImage, chains: list[str], names: tuple[str, ...]
) -> StoredImage:
    manifest, config = selected.manifest, selected.config
    parts = (manifest.config, *manifest.layers)
    return StoredImage(
        handler=pull.handler.name,
        image_id=manifest.config.digest,
        manifest=selected.digest,
        size=max(1, sum({part.digest: part.size for part in parts}.values())),
        user=config.config.user if config.config else "",
        platform=selected.platform,
        names=names,
        blobs=(*selected.documents, *dict.fromkeys(part.digest for part in parts)),
        chains=tuple(chains),
    )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _full_message(error: PullError) -> str:
    """Return an error's message with its notes."""
    return "; ".join((str(error), *getattr(error, "__notes__", ())))
