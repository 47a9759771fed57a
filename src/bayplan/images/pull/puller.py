"""The pull itself: resolve, choose, download, unpack, and only then an entry in the catalogue.

An index is flattened (indexes may hold indexes, to a bounded depth) and its entries are sorted by
the matcher. Entries that say no platform are judged by their config, and so is an image without an
index. If nothing suits, the error lists what there is.

A failed pull leaves no image and nothing unpacked: what it brought and nobody else uses is removed
again, but for what it downloaded, which the next pull of that repository continues from. Every
failure names the image, the handler and the platform that was wanted.
"""

import asyncio

import msgspec

from bayplan.images.flights import uninterrupted
from bayplan.images.layers.streams import Limits, chain_ids
from bayplan.images.platforms import Platform, choose
from bayplan.images.pull.contents import Contents, Phase, Pull, PullProgress
from bayplan.images.registry.client import Document, RegistryClient
from bayplan.images.registry.errors import IntegrityError, PullError
from bayplan.images.registry.media import (
    CONFIG_LIMIT,
    INDEX_TYPES,
    Descriptor,
    ImageConfig,
    Manifest,
    decode_config,
    decode_index,
    decode_manifest,
    document_type,
)
from bayplan.images.store.content import ContentStore
from bayplan.images.store.database import Content, Entry
from bayplan.images.store.store import Hold, ImageStore

_DEPTH_LIMIT = 3
_INDEX_LIMIT = 32
_UNDECLARED_LIMIT = 16


class Chosen(msgspec.Struct, frozen=True):
    """The image a handler gets."""

    digest: str
    manifest: Manifest
    config: ImageConfig
    platform: Platform  # what it was chosen by: the index's word, else the config's
    documents: tuple[str, ...]  # the indexes on the way, and the manifest


class Chooser:
    """Walks from a name's document to one manifest and its config."""

    def __init__(self, contents: Contents, store: ContentStore, pull: Pull, hold: Hold) -> None:
        self._contents = contents
        self._store = store
        self._pull = pull
        self._hold = hold
        self._indexes: list[str] = []

    async def choose(self, top: Document) -> Chosen:
        """Find the image for the handler."""
        kind = document_type(top.data, top.media_type, top.digest)
        if kind not in INDEX_TYPES:
            return self._judge([await self._image(top)], [])
        entries = await self._flatten(top, 1)
        choice = choose(entries, self._pull.handler.matcher)
        if choice.matching:
            best = choice.matching[0]
            return await self._image(await self._fetch(best), best.platform)
        images = [
            await self._image(await self._fetch(entry))
            for entry in choice.undeclared[:_UNDECLARED_LIMIT]
        ]
        return self._judge(images, choice.offered)

    def _judge(self, images: list[Chosen], offered: list[Platform]) -> Chosen:
        """Choose by what the configs say."""
        matcher = self._pull.handler.matcher
        platforms = [image.platform for image in images]
        ranks = [matcher.rank(platform) for platform in platforms]
        fitting = [(rank, place) for place, rank in enumerate(ranks) if rank is not None]
        if not fitting:
            raise self._pull.nothing_fits([*offered, *platforms])
        return images[min(fitting)[1]]

    def _declared(self, config: ImageConfig) -> Platform:
        """Read a config's platform; one that says nothing is taken to be for who asks."""
        wanted = self._pull.handler.matcher.platform
        return msgspec.structs.replace(
            config.platform,
            os=config.os or wanted.os,
            architecture=config.architecture or wanted.architecture,
        )

    async def _flatten(self, document: Document, depth: int) -> list[Descriptor]:
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
            return [entry]  # stays on the list of what is on offer
        inner = await self._flatten(await self._fetch(entry), depth + 1)
        return [msgspec.structs.replace(one, platform=one.platform or platform) for one in inner]

    async def _fetch(self, entry: Descriptor) -> Document:
        document = await self._contents.document(self._pull.source, entry.digest, self._hold)
        if len(document.data) != entry.size:
            raise IntegrityError(f"manifest {entry.digest} is not of {entry.size} bytes")
        kind = document_type(document.data, document.media_type, document.digest)
        if (kind in INDEX_TYPES) != self._is_index(entry):
            raise IntegrityError(f"{entry.digest} is {kind!r}, its index says {entry.media_type!r}")
        return document

    async def _image(self, document: Document, platform: Platform | None = None) -> Chosen:
        manifest = decode_manifest(document.data, document.digest)
        if manifest.config.size > CONFIG_LIMIT:
            raise IntegrityError(f"config {manifest.config.digest} is over {CONFIG_LIMIT} bytes")
        pull = self._pull
        await self._contents.blob(pull.source, manifest.config, self._hold, pull.listener)
        config = decode_config(self._store.read(manifest.config.digest), manifest)
        documents = tuple(dict.fromkeys((*self._indexes, document.digest)))
        platform = platform or self._declared(config)
        return Chosen(document.digest, manifest, config, platform, documents)


class Puller:
    """Pulls images into a store."""

    def __init__(
        self,
        store: ImageStore,
        registry: RegistryClient,
        downloads: int = 3,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._contents = Contents(store, registry, downloads, limits or Limits())

    def close(self) -> None:
        """Wait for work under way."""
        self._contents.close()

    async def pull(self, pull: Pull) -> Entry:
        """Pull an image for a handler; it is here whole when this returns."""
        with self._store.hold() as hold:
            try:
                return await self._pull(pull, hold)
            except BaseException as error:
                content = hold.content
                hold.release()
                await uninterrupted(self._clean_up(content))
                if isinstance(error, PullError):
                    raise type(error)(f"{pull.name}: {_whole(error)}") from error
                raise

    async def _clean_up(self, content: list[Content]) -> None:
        await self._store.collect(content)
        await self._store.trim()

    async def _pull(self, pull: Pull, hold: Hold) -> Entry:
        reference = pull.source.reference
        target = await self._registry.resolve(pull.source) or reference.target
        top = await self._contents.document(pull.source, target, hold)
        chosen = await Chooser(self._contents, self._store.content, pull, hold).choose(top)
        chains = chain_ids(chosen.config.diff_ids)
        await self._layers(pull, chosen, chains, hold)
        names = dict.fromkeys((str(reference), f"{reference.repository}@{top.digest}"))
        entry = await self._store.add(_entry(pull, chosen, chains, tuple(names)))
        self._store.partials.finished(entry.blobs, reference.repository)
        return entry

    async def _layers(self, pull: Pull, chosen: Chosen, chains: list[str], hold: Hold) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                downloads = [
                    group.create_task(self._contents.blob(pull.source, layer, hold, pull.listener))
                    for layer in chosen.manifest.layers
                ]
                await self._unpack(pull, chosen, chains, hold, downloads)
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors

    async def _unpack(
        self,
        pull: Pull,
        chosen: Chosen,
        chains: list[str],
        hold: Hold,
        downloads: "list[asyncio.Task[None]]",
    ) -> None:
        """Unpack each layer as soon as it and everything below it are there."""
        parent = None
        layers = zip(chosen.manifest.layers, chosen.config.diff_ids, chains, downloads, strict=True)
        for layer, diff_id, chain_id, download in layers:
            await download
            pull.listener(PullProgress(layer.digest, Phase.UNPACKING, layer.size, layer.size))
            job = self._contents.layer_job(layer, diff_id, parent)
            await self._contents.chain(chain_id, layer, job, hold)
            pull.listener(PullProgress(layer.digest, Phase.DONE, layer.size, layer.size))
            parent = chain_id


def _entry(pull: Pull, chosen: Chosen, chains: list[str], names: tuple[str, ...]) -> Entry:
    manifest, config = chosen.manifest, chosen.config
    parts = (manifest.config, *manifest.layers)
    return Entry(
        handler=pull.handler.name,
        image_id=manifest.config.digest,
        manifest=chosen.digest,
        size=max(1, sum({part.digest: part.size for part in parts}.values())),
        user=config.config.user if config.config else "",
        platform=chosen.platform,
        names=names,
        blobs=(*chosen.documents, *dict.fromkeys(part.digest for part in parts)),
        chains=tuple(chains),
    )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Pick the failure to report out of several at once."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _whole(error: PullError) -> str:
    """Give an error's message with its notes."""
    return "; ".join((str(error), *getattr(error, "__notes__", ())))
