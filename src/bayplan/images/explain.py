"""The manifest that each runtime handler would get of an image, without pulling it.

The index is fetched and matched by the same code as in a pull, into a temporary store, so that the
result is the same. Manifests and configs are read, layers are not.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from bayplan.images.handlers import RuntimeHandler
from bayplan.images.layers.streams import UnpackLimits
from bayplan.images.platforms import Platform
from bayplan.images.pull.contents import ContentFetcher, ImagePull
from bayplan.images.pull.puller import ManifestSelector
from bayplan.images.registry.client import ManifestDocument, PullSource, RegistryClient
from bayplan.images.registry.errors import PlatformError
from bayplan.images.store.store import ImageStore

_DOWNLOADS = 3


@dataclass(frozen=True, slots=True)
class HandlerSelection:
    """The manifest that a handler would get, or the problem if there is none."""

    handler: str
    wanted: Platform
    manifest: str = ""
    image_id: str = ""
    platform: Platform | None = None
    size: int = 0
    problem: str = ""


async def explain(
    registry: RegistryClient, source: PullSource, handlers: list[RuntimeHandler]
) -> list[HandlerSelection]:
    """Return what each handler would get of an image; PullError if it cannot be read."""
    target = await registry.resolve(source) or source.reference.target
    async with _scratch(registry) as (store, fetcher):
        with store.lease() as lease:
            top = await fetcher.document(source, target, lease)
            offers = []
            for handler in handlers:
                selector = ManifestSelector(
                    fetcher, store.content, ImagePull(source, handler), lease
                )
                offers.append(await _offer(selector, top, handler))
            return offers


async def _offer(
    selector: ManifestSelector, top: ManifestDocument, handler: RuntimeHandler
) -> HandlerSelection:
    wanted = handler.matcher.platform
    try:
        selected = await selector.select(top)
    except PlatformError as error:
        return HandlerSelection(handler.name, wanted, problem=str(error))
    parts = (selected.manifest.config, *selected.manifest.layers)
    return HandlerSelection(
        handler=handler.name,
        wanted=wanted,
        manifest=selected.digest,
        image_id=selected.manifest.config.digest,
        platform=selected.platform,
        size=sum({part.digest: part.size for part in parts}.values()),
    )


@asynccontextmanager
async def _scratch(registry: RegistryClient) -> AsyncIterator[tuple[ImageStore, ContentFetcher]]:
    with tempfile.TemporaryDirectory(prefix="bayplan-explain-") as folder:
        store = ImageStore(Path(folder))
        with closing(store):
            fetcher = ContentFetcher(store, registry, _DOWNLOADS, UnpackLimits())
            try:
                yield store, fetcher
            finally:
                fetcher.close()
