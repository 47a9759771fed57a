"""Informers: a local, current cache of some objects, with handlers and subscribers of changes.

A subscriber first gets every object of the cache, then every change, in order. Each subscriber has
a short queue; when it is full the informer waits and stops reading from the server. Nothing is
dropped, and memory stays bounded.

informer = Informer(client, Pod, Selection(namespace="shop"))
informer.on_change(print)                     # called in order, before the next one is read
...
await informer.synced.wait()
with informer.subscribe() as changes:         # or as an iterator, with back-pressure
    async for change in changes: ...

async with Informers(client) as informers:
    pods, nodes = informers.of(Pod), informers.of(Node)
    await informers.synced()
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Generic, Self, cast

from bayplan.base.timeslice import TimeSlice
from bayplan.client.client import Client
from bayplan.client.errors import (
    ClientError,
    ForbiddenError,
    MalformedError,
    MethodNotAllowedError,
    NotFoundError,
    ServerFaultError,
)
from bayplan.client.informers.reflector import Change, InformerCache, Reflector
from bayplan.client.objects import key_of
from bayplan.client.resources import Resource, T, resource_of
from bayplan.client.verbs.reads import Selection, WatchEvent


class Subscription(Generic[T]):
    """A stream of changes; to be used as a context manager and iterated over."""

    def __init__(
        self, existing: Iterable[T], bound: int, unsubscribe: Callable[[Subscription[T]], None]
    ) -> None:
        self._existing = deque(existing)
        self._changes: asyncio.Queue[Change[T]] = asyncio.Queue(bound)
        self._unsubscribe = unsubscribe
        self._closed = False

    async def put(self, change: Change[T]) -> None:
        """Queue a change; wait while the queue is full."""
        if not self._closed:
            await self._changes.put(change)

    @property
    def waiting(self) -> int:
        """How many changes are in the queue."""
        return self._changes.qsize()

    def close(self) -> None:
        """End the subscription; an informer that waits for the queue goes on."""
        self._closed = True
        self._unsubscribe(self)
        while not self._changes.empty():
            self._changes.get_nowait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change[T]:
        if self._existing:
            return Change("added", new=self._existing.popleft())
        if self._closed:
            raise StopAsyncIteration
        return await self._changes.get()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


log = logging.getLogger(__name__)
MalformedObjectHandler = Callable[[str, MalformedError | None], None]
"""Called with the key of a malformed object and its error, or None once it is deleted."""
QUEUE_LENGTH = 128
REFUSALS = (ForbiddenError, MethodNotAllowedError, NotFoundError)
"""Errors that usually persist until permissions or definitions change."""

MAX_FAULTS = 3
"""Server faults before the first list that count as a refusal: a conversion webhook may fail."""


class Informer(Generic[T]):
    """A cache of the selected objects that follows the server."""

    def __init__(
        self, client: Client, kind: type[T] | Resource[T], which: Selection | None = None
    ) -> None:
        self.resource = resource_of(kind)
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        """Set once it has synced or was refused: the kind is not served or forbidden, or the server
        has failed a few times. It goes on retrying.
        """
        self._faults = 0
        self.lists = 0
        self.last_error: ClientError | None = None
        self._store: InformerCache[T] = InformerCache()
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._malformed: dict[str, MalformedError] = {}
        self._malformed_handlers: list[MalformedObjectHandler] = []
        self._subscriptions: list[Subscription[T]] = []
        self._reflector = Reflector(
            client, self.resource, which or Selection(), store=self, report=self._report
        )

    @property
    def refusal(self) -> ClientError | None:
        """The error of an informer that was refused and has never synced."""
        refused = isinstance(self.last_error, REFUSALS) and not self.synced.is_set()
        return self.last_error if refused else None

    @property
    def objects(self) -> Mapping[str, T]:
        """The cached objects by `namespace/name`, or by name; a live view."""
        return self._store

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call a handler for every object of the cache, and for every change from now on."""
        for item in self._store.values():
            handler(Change("added", new=item))
        self._handlers.append(handler)

    def listen(self, handler: Callable[[Change[T]], None]) -> list[T]:
        """Return the objects of the cache; the handler is called for every change from now on."""
        self._handlers.append(handler)
        return list(self._store.values())

    def on_malformed(self, handler: MalformedObjectHandler) -> None:
        """Call a handler for every malformed object, now and later.

        One that fits its type again, or is deleted, is reported as a change.
        """
        for key, error in self._malformed.items():
            handler(key, error)
        self._malformed_handlers.append(handler)

    def subscribe(self, bound: int = QUEUE_LENGTH) -> Subscription[T]:
        """Subscribe to every object of the cache, then every change; the queue holds `bound`."""
        subscription = Subscription(self._store.values(), bound, self._subscriptions.remove)
        self._subscriptions.append(subscription)
        return subscription

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await self._reflector.run()

    async def replace(self, items: Iterable[T], malformed: frozenset[str]) -> None:
        """Replace the cache by a complete list of the reflector."""
        self.lists += 1
        time_slice, listed = TimeSlice(), dict[str, T]()
        for item in items:
            listed[key_of(item)] = item
            if time_slice.is_over:
                await time_slice.begin_next()
        await self._publish(self._store.replace(listed, keep=malformed), time_slice)
        for key in [key for key in self._malformed if key not in malformed]:
            del self._malformed[key]
            self._report_malformed(key, None)
        self.last_error = None
        self.synced.set()
        self.answered.set()

    async def apply(self, event: WatchEvent[T]) -> None:
        """Apply a watch event of the reflector."""
        if event.object is not None and self._malformed:
            self._malformed.pop(key_of(event.object), None)
        await self._publish(self._store.apply(event))

    async def _publish(
        self, changes: Iterable[Change[T]], time_slice: TimeSlice | None = None
    ) -> None:
        """Notify present handlers and subscribers; later ones have read the cache after it."""
        handlers, subscriptions = tuple(self._handlers), tuple(self._subscriptions)
        if not handlers and not subscriptions:
            return
        for change in changes:
            for handler in handlers:
                handler(change)
            for subscription in subscriptions:
                await subscription.put(change)
            if time_slice is not None and time_slice.is_over:
                await time_slice.begin_next()

    def _report(self, error: ClientError) -> None:
        is_new = not isinstance(error, REFUSALS) or str(error) != str(self.last_error)
        self.last_error = error
        if is_new:  # a refusal repeats at every retry
            log.warning("informer of %s: %s", self.resource, error)
        self._faults += isinstance(error, ServerFaultError)
        if isinstance(error, REFUSALS) or self._faults >= MAX_FAULTS:
            self.answered.set()
        if isinstance(error, MalformedError) and error.key:
            self._malformed[error.key] = error
            self._report_malformed(error.key, error)

    def _report_malformed(self, key: str, error: MalformedError | None) -> None:
        for handler in tuple(self._malformed_handlers):
            handler(key, error)


InformerKey = tuple[str, str, bool, Selection]


class Informers:
    """The informers of one client; one that fails cancels the others and the body."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[InformerKey, object] = {}
        self._synced: list[asyncio.Event] = []
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []

    def of(self, kind: type[T] | Resource[T], which: Selection | None = None) -> Informer[T]:
        """Return the informer of those objects; start it on the first call."""
        resource, which = resource_of(kind), which or Selection()
        key = (resource.api_version, resource.plural, resource.type is dict, which)
        if key not in self._informers:
            self._informers[key] = self._start(Informer(self._client, resource, which))
        return cast("Informer[T]", self._informers[key])

    async def synced(self) -> None:
        """Wait until all of them have synced."""
        for event in tuple(self._synced):
            await event.wait()

    def _start(self, informer: Informer[T]) -> Informer[T]:
        self._synced.append(informer.synced)
        self._tasks.append(self._group.create_task(informer.run()))
        return informer

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, traceback)
        else:
            # The body's error is raised as it is, not inside an ExceptionGroup.
            await self._group.__aexit__(None, None, None)
