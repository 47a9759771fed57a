"""The page of a cluster that goes on: followed by informers, as far as one may read it."""

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
from bayplan.fit.events import Event as Told
from bayplan.kube.meta import KubeObject
from bayplan.nodegroups import Provider
from bayplan.observe import LiveSnapshot, follow
from bayplan.observe.kinds import ALSO_SHOWN, STATUSES, status_alone
from bayplan.ui.answers import Answers
from bayplan.ui.cloud import poll_cloud
from bayplan.ui.encoding import Source
from bayplan.ui.page import Page
from bayplan.ui.picture.picture import Picture

NOTES_SECONDS = 5.0
FREEZE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LiveSource:
    """Which cluster, and what is known of it besides."""

    name: str
    kind: str = "live"
    profile: Profile | None = None
    answers: Answers = field(default_factory=Answers)
    provider: Provider | None = None
    """The cloud, where it can be asked."""


@asynccontextmanager
async def live_page(client: Client, source: LiveSource) -> AsyncIterator[Page]:
    """The page of the client's cluster for as long as the context lasts; it has nothing to show
    until the cluster is known.
    """
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(follow(client, profile=source.profile, lenient=True))
        picture = Picture(live.snapshot, client.clock.now)
        page = Page(
            picture, Source(source.kind, source.name, live=True), client.clock, source.answers
        )
        picture.groups.say("declared", source.answers.groups())
        also = _follow_others(live, page)

        def hear(event: Told) -> None:
            picture.hear(event)
            page.stir()

        live.observer.listen(hear)
        tasks = [
            lambda: _run(live, page),
            lambda: _note(live, also, page),
            lambda: _keep_collector_short(page),
        ]
        if source.provider is not None:
            provider = source.provider
            tasks.append(lambda: poll_cloud(provider, page))
        await stack.enter_async_context(_beside(*tasks))
        yield page


@asynccontextmanager
async def _beside(*works: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(live: LiveSnapshot, page: Page) -> None:
    await live.synced()
    async with page.running():
        await asyncio.Event().wait()


async def _keep_collector_short(page: Page) -> None:
    """Until there is a first picture, what has been looked through once for garbage stays: a large
    cluster is millions of objects, and looking through them again holds the loop for a second.
    """
    while not page.ready.is_set():
        if gc.get_count()[1]:
            freeze()
        await asyncio.sleep(FREEZE_SECONDS)


async def _note(live: LiveSnapshot, also: list[Informer[KubeObject]], page: Page) -> None:
    """Say what may not be read, and what follows from that, for as long as it is so."""
    await live.synced()
    while True:
        refused = [one for one in (*live.followed, *also) if _is_lacking(one)]
        page.set_notes(
            f"{one.resource} cannot be read ({one.last_error}): what rests on them is not shown"
            for one in refused
        )
        await page.clock.sleep(NOTES_SECONDS)


def _is_lacking(informer: Informer[KubeObject]) -> bool:
    """Whether a kind may not be read, or the server fails at it; not if there is no such kind."""
    error = informer.last_error
    return not informer.synced.is_set() and isinstance(error, ForbiddenError | ServerFaultError)


def _follow_others(live: LiveSnapshot, page: Page) -> list[Informer[KubeObject]]:
    """What the model does not count: what plans and queues rest on, events, a status."""
    informers = live.informers
    found: list[Informer[KubeObject]] = [informers.of(kind) for kind in ALSO_SHOWN]
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

    informers.of(STATUSES, status_alone()).on_change(hear_status)
    return found
