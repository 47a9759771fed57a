"""Keeping up with the server: list, watch, resume, list again.

The reflector knows how far it has come by a resource version, and moves it on only when whoever
listens has taken what came before. From there:

- *No version yet*: fetch everything. Preferably as a streaming list (a watch that begins with all
  there is and says when that was all); from servers that do not do this, in pages. Only a complete
  list is handed on.
- *A version*: watch from it. When the stream ends or is cut, or the server is unwell, watch again
  from where we are. When the server no longer remembers that version (410, as an answer or within
  the stream) or sends what cannot be understood, start over with no version.

Between failures it waits, longer each time, with some chance added so that a fleet of clients does
not come back at once. It never gives up: what is wrong is reported, and is often put right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol

from bayplan.base.pacing import Backoff
from bayplan.client.client import Client
from bayplan.client.errors import (
    ApiError,
    BadRequestError,
    ClientError,
    DisconnectedError,
    ForbiddenError,
    InvalidError,
    MalformedError,
    MethodNotAllowedError,
    NotAcceptableError,
    ServerFaultError,
    TimedOutError,
    TooManyRequestsError,
    UnreachableError,
)
from bayplan.client.informers.store import Store
from bayplan.client.resources import Resource, T
from bayplan.client.verbs.reading import Selection, WatchFrom
from bayplan.client.verbs.watching import WatchEvent, WatchStream

RESUMABLE = (
    DisconnectedError,
    TimedOutError,
    UnreachableError,
    TooManyRequestsError,
    ServerFaultError,
)
WATCH_SECONDS = 300
STREAMED_TRIES = 2
BRIEF = 1.0
"""A watch that ends sooner than this, with nothing new told, counts as a failure."""


class _IgnoredError(ClientError):
    """The server did not hear the wish for a streaming list."""


NO_STREAMING_LIST = (
    BadRequestError,
    ForbiddenError,
    InvalidError,
    MethodNotAllowedError,
    NotAcceptableError,
    _IgnoredError,
)


class Sink(Protocol[T]):
    """Whoever listens to a reflector."""

    async def replace(self, items: Iterable[T], unfit: frozenset[str]) -> None:
        """Take a complete list, but for the objects of those keys, which do not fit their type."""
        ...

    async def apply(self, event: WatchEvent[T]) -> None:
        """Take one event."""
        ...


class Reflector(Generic[T]):
    """Hands on the state of a resource, and everything that happens to it, in order."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        which: Selection,
        sink: Sink[T],
        report: Callable[[ClientError], None],
    ) -> None:
        self._client = client
        self._resource = resource
        self._which = which
        self._sink = sink
        self._report = report
        self._backoff = Backoff(client.rng)
        self._version: str | None = None
        self._streamed_tries = STREAMED_TRIES
        self._unfit: set[str] = set()

    async def run(self) -> None:
        """Keep up until cancelled."""
        while True:
            try:
                await (self._fill() if self._version is None else self._follow(self._version))
            except ClientError as error:
                await self._recover(error)

    async def _recover(self, error: ClientError) -> None:
        self._report(error)
        if not isinstance(error, RESUMABLE):
            self._version = None
        await self._wait()

    async def _wait(self) -> None:
        await self._client.clock.sleep(self._backoff.next_wait())

    async def _fill(self) -> None:
        self._unfit.clear()
        if self._streamed_tries:
            try:
                return await self._fill_by_stream()
            except (ApiError, _IgnoredError) as error:
                if self._version is not None:
                    raise  # the list was complete; this is about what came after it
                if isinstance(error, NO_STREAMING_LIST):
                    self._streamed_tries = 0
        return await self._fill_by_pages()

    async def _fill_by_pages(self) -> None:
        page = await self._client.collect(self._resource, self._which, unfit=self._set_aside)
        await self._sink.replace(page.items, frozenset(self._unfit))
        self._came_to(page.resource_version)

    async def _fill_by_stream(self) -> None:
        self._streamed_tries -= 1
        async with self._watch(WatchFrom(initial_events=True, seconds=self._seconds())) as stream:
            await self._take_initial(stream)
            self._streamed_tries = STREAMED_TRIES
            await self._take(stream)

    async def _take_initial(self, stream: WatchStream[T]) -> None:
        draft: Store[T] = Store()
        async for event in stream:
            draft.apply(event)
            if event.initial_events_end:
                await self._sink.replace(draft.values(), frozenset(self._unfit))
                return self._came_to(event.resource_version)
            if event.type == "BOOKMARK":
                raise _IgnoredError("a bookmark, but not that of a streaming list")
        raise DisconnectedError("the stream ended before all had been told")

    async def _follow(self, version: str) -> None:
        began, clock = self._client.clock.monotonic(), self._client.clock
        async with self._watch(WatchFrom(version, seconds=self._seconds())) as stream:
            await self._take(stream)
        if self._version == version and clock.monotonic() - began < BRIEF:
            await self._wait()

    async def _take(self, stream: WatchStream[T]) -> None:
        """Hand on what the stream tells, until it ends."""
        async for event in stream:
            await self._sink.apply(event)
            self._came_to(event.resource_version)

    def _came_to(self, version: str) -> None:
        """Resume from there; only news counts as things going well."""
        if not version:
            raise MalformedError(f"{self._resource}: the server names no resource version")
        if version != self._version:
            self._version = version
            self._backoff.reset()

    def _set_aside(self, error: MalformedError) -> None:
        self._unfit.add(error.key)
        self._report(error)

    def _watch(self, start: WatchFrom) -> AbstractAsyncContextManager[WatchStream[T]]:
        return self._client.watch(self._resource, self._which, start, unfit=self._set_aside)

    def _seconds(self) -> int:
        """How long to watch: not all informers' watches shall end together."""
        return int(WATCH_SECONDS * (1 + self._client.rng.random()))
