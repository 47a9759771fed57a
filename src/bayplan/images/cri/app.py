"""The whole image service: its parts put together, opened and closed in order."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from bayplan.base.pacing import RetryPolicy
from bayplan.images.cri.images import Images
from bayplan.images.cri.metrics import Metrics
from bayplan.images.cri.runtime import Runtime
from bayplan.images.cri.server import services, start_server
from bayplan.images.cri.watching import Watchers
from bayplan.images.layers.limits import Limits
from bayplan.images.pull.puller import Puller
from bayplan.images.registry.client import RegistryClient
from bayplan.images.registry.download import Pace
from bayplan.images.registry.retry import PATIENCE, Retrier
from bayplan.images.registry.transport import Timeouts, Transport
from bayplan.images.settings import Settings
from bayplan.images.store.partials import Keeping
from bayplan.images.store.store import ImageStore

_GRACE = 5.0
_TIDYING_SECONDS = 600.0
_LOG = logging.getLogger(__name__)


class Tuning(msgspec.Struct, frozen=True):
    """Patience and bounds; the defaults suit a node."""

    retry: RetryPolicy = PATIENCE
    timeouts: Timeouts = Timeouts()
    pace: Pace = Pace()
    limits: Limits = Limits()
    keeping: Keeping = Keeping()


DEFAULT_TUNING = Tuning()


@contextlib.asynccontextmanager
async def open_puller(
    settings: Settings, store: ImageStore, tuning: Tuning = DEFAULT_TUNING
) -> AsyncIterator[Puller]:
    """Give a puller into a store."""
    transport = Transport(tuning.timeouts)
    registry = RegistryClient(
        transport, Retrier(tuning.retry), tuning.pace, settings.hosts_directory
    )
    puller = Puller(store, registry, settings.downloads, tuning.limits)
    try:
        yield puller
    finally:
        puller.close()
        await transport.close()


@contextlib.asynccontextmanager
async def serve(
    socket: Path, root: Path, settings: Settings, tuning: Tuning = DEFAULT_TUNING
) -> AsyncIterator[CollectorRegistry]:
    """Serve the CRI on a socket while the context lasts; gives out the metrics."""
    store = ImageStore(root, tuning.keeping)
    with contextlib.closing(store):
        async with open_puller(settings, store, tuning) as puller:
            metrics = Metrics(store, settings.handlers)
            watchers = Watchers(settings.handlers)
            images = Images(settings, store, puller, metrics, watchers)
            handlers = services(images, Runtime(settings), watchers)
            server = await start_server(socket, handlers)
            tidying = asyncio.ensure_future(_tidy(store))
            try:
                yield metrics.registry
            finally:
                tidying.cancel()
                await server.stop(_GRACE)


async def _tidy(store: ImageStore) -> None:
    """Drop downloads that nobody has continued in time."""
    while True:
        await asyncio.sleep(_TIDYING_SECONDS)
        try:
            await store.trim()
        except OSError as error:
            _LOG.warning("unfinished downloads cannot be cleared away: %s", error)
