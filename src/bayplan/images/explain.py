"""What an image would give each runtime handler, without pulling it.

The index is fetched and judged by the very code that a pull uses, into a store that is thrown away,
so that the answer here is the answer there. Manifests and configs are read, layers are not.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from bayplan.images.handlers import Handler
from bayplan.images.layers.streams import Limits
from bayplan.images.platforms import Platform
from bayplan.images.pull.contents import Contents, Pull
from bayplan.images.pull.puller import Chooser
from bayplan.images.registry.client import Document, RegistryClient, Source
from bayplan.images.registry.errors import PlatformError
from bayplan.images.store.store import ImageStore

_DOWNLOADS = 3


@dataclass(frozen=True, slots=True)
class Offer:
    """What one handler would get; without a manifest, why it would get nothing."""

    handler: str
    wanted: Platform
    manifest: str = ""
    image_id: str = ""
    platform: Platform | None = None
    size: int = 0
    problem: str = ""


async def explain(registry: RegistryClient, source: Source, handlers: list[Handler]) -> list[Offer]:
    """What each handler would get of an image; PullError if the image itself cannot be read."""
    target = await registry.resolve(source) or source.reference.target
    async with _scratch(registry) as (store, contents):
        with store.hold() as hold:
            top = await contents.document(source, target, hold)
            offers = []
            for handler in handlers:
                chooser = Chooser(contents, store.content, Pull(source, handler), hold)
                offers.append(await _offer(chooser, top, handler))
            return offers


async def _offer(chooser: Chooser, top: Document, handler: Handler) -> Offer:
    wanted = handler.matcher.platform
    try:
        chosen = await chooser.choose(top)
    except PlatformError as error:
        return Offer(handler.name, wanted, problem=str(error))
    parts = (chosen.manifest.config, *chosen.manifest.layers)
    return Offer(
        handler=handler.name,
        wanted=wanted,
        manifest=chosen.digest,
        image_id=chosen.manifest.config.digest,
        platform=chosen.platform,
        size=sum({part.digest: part.size for part in parts}.values()),
    )


@asynccontextmanager
async def _scratch(registry: RegistryClient) -> AsyncIterator[tuple[ImageStore, Contents]]:
    with tempfile.TemporaryDirectory(prefix="bayplan-explain-") as folder:
        store = ImageStore(Path(folder))
        with closing(store):
            contents = Contents(store, registry, _DOWNLOADS, Limits())
            try:
                yield store, contents
            finally:
                contents.close()
