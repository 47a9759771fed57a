"""The pull itself: resolve, choose, download, unpack, and only then an entry in the catalogue.

A failed pull leaves no image and nothing unpacked: what it brought and nobody else uses is removed
again, but for what it downloaded, which the next pull of that repository continues from. Every
failure names the image, the handler and the platform that was wanted.
"""

import asyncio

from bayplan.images.flights import uninterrupted
from bayplan.images.layers.limits import Limits, chain_ids
from bayplan.images.pull.choosing import Chooser, Chosen
from bayplan.images.pull.contents import Contents
from bayplan.images.pull.progress import Phase, PullProgress
from bayplan.images.pull.request import Pull
from bayplan.images.registry.client import RegistryClient
from bayplan.images.registry.errors import PullError
from bayplan.images.store.entries import Content, Entry
from bayplan.images.store.store import Hold, ImageStore


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
