"""Keeping up with the server: list, watch, resume, list again; the copy, and its changes.

Pure bookkeeping, no I/O. Whatever the server tells, the changes that come out describe each
object's life without gaps: added once, updated while it is there, deleted once. An object that was
deleted and made again under its name while we were away is told as a deletion and an addition.

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

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Generic, Literal, Protocol

import msgspec

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
from bayplan.client.objects import key_of, uid_of, version_of
from bayplan.client.resources import Resource, T
from bayplan.client.verbs.reads import Selection, WatchEvent, WatchFrom, WatchStream


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One step in an object's life.

    `old` is what we knew before, `new` what the server says now. Of a deleted object `new` is its
    last state, if the server told us; it did not if the object went while we were not watching.
    """

    type: Literal["added", "updated", "deleted"]
    old: T | None = None
    new: T | None = None

    @property
    def object(self) -> T:
        """The newest state known."""
        newest = self.new if self.new is not None else self.old
        assert newest is not None, "a change is about an object"  # noqa: S101
        return newest

    @property
    def key(self) -> str:
        """Which object it is about."""
        return key_of(self.object)


class Store(Mapping[str, T], Generic[T]):
    """Objects by `namespace/name`, or by name if cluster-scoped."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def replace(
        self, listed: dict[str, T], keep: frozenset[str] = frozenset()
    ) -> Iterable[Change[T]]:
        """Take a whole new list, by key; deletions are told first, then the rest in the list's
        order.

        Objects in `keep` are there but could not be read: what was known of them stays.
        """
        if not self._items:
            self._items = listed.copy()
            return (Change("added", new=item) for item in listed.values())
        gone = [key for key in self._items if key not in listed and key not in keep]
        changes = [Change("deleted", old=self._items.pop(key)) for key in gone]
        for item in listed.values():
            changes += self._put(item)
        return changes

    def apply(self, event: WatchEvent[T]) -> list[Change[T]]:
        """Take one event of a watch."""
        if event.object is None:
            return []
        return self._drop(event.object) if event.type == "DELETED" else self._put(event.object)

    def _put(self, item: T) -> list[Change[T]]:
        key = key_of(item)
        old = self._items.get(key)
        if old is not None and version_of(old) == version_of(item):
            return []
        self._items[key] = item
        if old is None:
            return [Change("added", new=item)]
        if uid_of(old) != uid_of(item):
            return [Change("deleted", old=old), Change("added", new=item)]
        return [Change("updated", old=old, new=item)]

    def _drop(self, item: T) -> list[Change[T]]:
        old = self._items.get(key_of(item))
        if old is None or uid_of(old) != uid_of(item):
            return []
        del self._items[key_of(item)]
        return [Change("deleted", old=old, new=item)]


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
