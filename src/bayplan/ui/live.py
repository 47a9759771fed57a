"""The page of a live cluster, followed by informers as far as RBAC allows."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bayplan.base.garbage import freeze
from bayplan.client import Change, Client, Informer, Untyped
from bayplan.client.errors import ForbiddenError, ServerFaultError
from bayplan.client.resources import EVENTS
from bayplan.fit import Profile
from bayplan.fit.hints import ClusterEvent as SnapshotEvent
from bayplan.kube.meta import KubeObject
from bayplan.nodegroups import Provider
from bayplan.observe import LiveSnapshot, follow
from bayplan.observe.kinds import STATUS_RESOURCE, WORKLOAD_KINDS, autoscaler_status
from bayplan.ui.answers import PageAnswers
from bayplan.ui.cloud import poll_cloud
from bayplan.ui.encoder import PageSource
from bayplan.ui.page import ClusterPage
from bayplan.ui.picture.picture import Picture

NOTES_SECONDS = 5.0
FREEZE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LiveSource:
    """The cluster of a live page, and additional sources of its data."""

    name: str
    kind: str = "live"
    profile: Profile | None = None
    answers: PageAnswers = field(default_factory=PageAnswers)
    provider: Provider | None = None
    """The cloud provider, if it can be polled."""


@asynccontextmanager
async def live_page(client: Client, source: LiveSource) -> AsyncIterator[ClusterPage]:
    """Yield the page of the client's cluster; it has no data until the informers have synced."""
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(follow(client, profile=source.profile, lenient=True))
        picture = Picture(live.snapshot, client.clock.now)
        page = ClusterPage(
            picture, PageSource(source.kind, source.name, live=True), client.clock, source.answers
        )
        picture.groups.update("declared", source.answers.groups())
        also = _follow_others(live, page)

        def hear(event: SnapshotEvent) -> None:
            picture.hear(event)
            page.mark_changed()

        live.observer.listen(hear)
        tasks = [
            lambda: _run(live, page),
            lambda: _note(live, also, page),
            lambda: _freeze_objects(page),
        ]
        if source.provider is not None:
            provider = source.provider
            tasks.append(lambda: poll_cloud(provider, page))
        await stack.enter_async_context(_background_tasks(*tasks))
        yield page


@asynccontextmanager
async def _background_tasks(*works: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(live: LiveSnapshot, page: ClusterPage) -> None:
    await live.synced()
    async with page.running():
        await asyncio.Event().wait()


async def _freeze_objects(page: ClusterPage) -> None:
    """Freeze objects until there is a first picture.

    A large cluster has millions of objects, and scanning them again blocks the loop for a second.
    """
    while not page.ready.is_set():
        if gc.get_count()[1]:
            freeze()
        await asyncio.sleep(FREEZE_SECONDS)


async def _note(live: LiveSnapshot, also: list[Informer[KubeObject]], page: ClusterPage) -> None:
    """Keep the notes about kinds that cannot be read."""
    await live.synced()
    while True:
        refused = [one for one in (*live.followed, *also) if _is_lacking(one)]
        page.set_notes(
            f"{one.resource} cannot be read ({one.last_error}): data that needs them is not shown"
            for one in refused
        )
        await page.clock.sleep(NOTES_SECONDS)


def _is_lacking(informer: Informer[KubeObject]) -> bool:
    """Return whether a kind cannot be read because of RBAC or a server error."""
    error = informer.last_error
    return not informer.synced.is_set() and isinstance(error, ForbiddenError | ServerFaultError)


def _follow_others(live: LiveSnapshot, page: ClusterPage) -> list[Informer[KubeObject]]:
    """Follow events, the autoscaler status and the objects for plans and queues."""
    informers = live.informers
    found: list[Informer[KubeObject]] = [informers.of(kind) for kind in WORKLOAD_KINDS]
    found.append(informers.of(EVENTS))

    def hear(change: Change[KubeObject]) -> None:
        if change.type == "deleted":
            page.extras.drop(type(change.object), change.object.key)
        else:
            page.extras.take(change.object)

    for informer in found:
        informer.on_change(hear)

    def hear_status(change: Change[Untyped]) -> None:
        page.extras.take_untyped(change.object, gone=change.type == "deleted")

    informers.of(STATUS_RESOURCE, autoscaler_status()).on_change(hear_status)
    return found
