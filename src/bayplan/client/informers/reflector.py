"""The reflector: list, watch, resume, list again; and the informer's cache with its changes.

The cache does no I/O. Its changes describe each object's life without gaps: added once, updated
while it exists, deleted once. An object that was deleted and created again under its name while
there was no watch is a deletion and an addition.

The reflector keeps the resource version it has reached, and advances it only when its store has
taken the event. From there:

- *No version yet*: list everything. Preferably as a streaming list (a watch that begins with all
  objects and a bookmark at their end); from servers that do not support this, in pages. Only a
  complete list is passed on.
- *A version*: watch from it. When the stream ends or is cut, or the server fails, watch again from
  the same version. When the version has expired (410, as a response or within the stream) or the
  stream is malformed, list again.

Between failures it waits, longer each time and with jitter, so that many clients do not return at
once. It never gives up: errors are reported, and are often temporary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Generic, Literal, Protocol

import msgspec

from bayplan.base.flowcontrol import ExponentialBackoff
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
    """A change of an object in the cache.

    `old` is the cached object, `new` the server's. Of a deleted object `new` is its last state,
    which is unknown if it was deleted while there was no watch.
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
        """The object's `namespace/name`, or name."""
        return key_of(self.object)


class InformerCache(Mapping[str, T], Generic[T]):
    """The cached objects by `namespace/name`, or by name if cluster-scoped."""

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
        """Replace all objects by a list, by key; return deletions, then the list's changes.

        Objects in `keep` exist but are malformed: their cached state stays.
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
        """Apply an event of a watch; return the changes."""
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
MAX_STREAMED_LISTS = 2
SHORT_WATCH_SECONDS = 1.0
"""A watch that ends sooner than this, without an event, counts as a failure."""


class _NotStreamedError(ClientError):
    """The server ignored the request for a streaming list."""


NO_STREAMING_LIST = (
    BadRequestError,
    ForbiddenError,
    InvalidError,
    MethodNotAllowedError,
    NotAcceptableError,
    _NotStreamedError,
)


class ReflectorStore(Protocol[T]):
    """The store that a reflector fills."""

    async def replace(self, items: Iterable[T], malformed: frozenset[str]) -> None:
        """Take a complete list, without the malformed objects of those keys."""
        ...

    async def apply(self, event: WatchEvent[T]) -> None:
        """Take one watch event."""
        ...


class Reflector(Generic[T]):
    """Lists and watches a resource, and passes everything to a store, in order."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        which: Selection,
        store: ReflectorStore[T],
        report: Callable[[ClientError], None],
    ) -> None:
        self._client = client
        self._resource = resource
        self._which = which
        self._store = store
        self._report = report
        self._backoff = ExponentialBackoff(client.rng)
        self._version: str | None = None
        self._streamed_lists_left = MAX_STREAMED_LISTS
        self._malformed: set[str] = set()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await (self._list() if self._version is None else self._resume(self._version))
            except ClientError as error:
                await self._recover(error)

    async def _recover(self, error: ClientError) -> None:
        self._report(error)
        if not isinstance(error, RESUMABLE):
            self._version = None
        await self._wait()

    async def _wait(self) -> None:
        await self._client.clock.sleep(self._backoff.next_wait())

    async def _list(self) -> None:
        self._malformed.clear()
        if self._streamed_lists_left:
            try:
                return await self._list_by_stream()
            except (ApiError, _NotStreamedError) as error:
                if self._version is not None:
                    raise  # the list was complete; the error came after it
                if isinstance(error, NO_STREAMING_LIST):
                    self._streamed_lists_left = 0
        return await self._list_by_pages()

    async def _list_by_pages(self) -> None:
        page = await self._client.collect(
            self._resource, self._which, malformed=self._report_malformed
        )
        await self._store.replace(page.items, frozenset(self._malformed))
        self._advance(page.resource_version)

    async def _list_by_stream(self) -> None:
        self._streamed_lists_left -= 1
        async with self._watch(WatchFrom(initial_events=True, seconds=self._seconds())) as stream:
            await self._read_initial(stream)
            self._streamed_lists_left = MAX_STREAMED_LISTS
            await self._read(stream)

    async def _read_initial(self, stream: WatchStream[T]) -> None:
        initial: InformerCache[T] = InformerCache()
        async for event in stream:
            initial.apply(event)
            if event.initial_events_end:
                await self._store.replace(initial.values(), frozenset(self._malformed))
                return self._advance(event.resource_version)
            if event.type == "BOOKMARK":
                raise _NotStreamedError("a bookmark, but not that of a streaming list")
        raise DisconnectedError("the stream ended before the list was complete")

    async def _resume(self, version: str) -> None:
        began, clock = self._client.clock.monotonic(), self._client.clock
        async with self._watch(WatchFrom(version, seconds=self._seconds())) as stream:
            await self._read(stream)
        if self._version == version and clock.monotonic() - began < SHORT_WATCH_SECONDS:
            await self._wait()

    async def _read(self, stream: WatchStream[T]) -> None:
        """Pass the stream's events to the store until it ends."""
        async for event in stream:
            await self._store.apply(event)
            self._advance(event.resource_version)

    def _advance(self, version: str) -> None:
        """Keep the version to resume from; reset the backoff if it is a new one."""
        if not version:
            raise MalformedError(f"{self._resource}: no resource version in the response")
        if version != self._version:
            self._version = version
            self._backoff.reset()

    def _report_malformed(self, error: MalformedError) -> None:
        self._malformed.add(error.key)
        self._report(error)

    def _watch(self, start: WatchFrom) -> AbstractAsyncContextManager[WatchStream[T]]:
        return self._client.watch(
            self._resource, self._which, start, malformed=self._report_malformed
        )

    def _seconds(self) -> int:
        """Return how long to watch, with jitter so that not all watches end together."""
        return int(WATCH_SECONDS * (1 + self._client.rng.random()))
