"""Which manifest of an image a handler gets.

An index is flattened (indexes may hold indexes, to a bounded depth) and its entries are sorted by
the matcher. Entries that say no platform are judged by their config, and so is an image without an
index. If nothing suits, the error lists what there is.
"""

import msgspec

from bayplan.images.platforms.platform import Platform
from bayplan.images.platforms.selection import choose
from bayplan.images.pull.contents import Contents
from bayplan.images.pull.request import Pull
from bayplan.images.registry.client import Document
from bayplan.images.registry.errors import IntegrityError
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
from bayplan.images.store.store import Hold

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
