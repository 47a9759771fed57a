"""An informer: a local, current copy of some objects, and word of every change to it.

A subscriber first hears of everything there is, then of every change, in order. Between the
informer and each subscriber lies a short queue; when it is full the informer waits, stops reading
from the server, and the network's own flow control does the rest. Nothing is dropped, and memory
stays bounded.

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

from bayplan.base.turns import Turns
from bayplan.client.client import Client
from bayplan.client.errors import (
    ClientError,
    ForbiddenError,
    MalformedError,
    MethodNotAllowedError,
    NotFoundError,
    ServerFaultError,
)
from bayplan.client.informers.reflector import Change, Reflector, Store
from bayplan.client.objects import key_of
from bayplan.client.resources import Resource, T, resource_of
from bayplan.client.verbs.reads import Selection, WatchEvent


class Subscription(Generic[T]):
    """The changes, from now on; to be used as a context manager and iterated over."""

    def __init__(
        self, there: Iterable[T], bound: int, forget: Callable[[Subscription[T]], None]
    ) -> None:
        self._there = deque(there)
        self._changes: asyncio.Queue[Change[T]] = asyncio.Queue(bound)
        self._forget = forget
        self._closed = False

    async def put(self, change: Change[T]) -> None:
        """Hand a change over, waiting for room."""
        if not self._closed:
            await self._changes.put(change)

    @property
    def waiting(self) -> int:
        """How many changes lie in the queue."""
        return self._changes.qsize()

    def close(self) -> None:
        """Listen no more; an informer that waits for room goes on."""
        self._closed = True
        self._forget(self)
        while not self._changes.empty():
            self._changes.get_nowait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change[T]:
        if self._there:
            return Change("added", new=self._there.popleft())
        if self._closed:
            raise StopAsyncIteration
        return await self._changes.get()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


log = logging.getLogger(__name__)
UnfitHandler = Callable[[str, MalformedError | None], None]
"""Told which object does not fit its type and why, or (None) that it is not there any more."""
QUEUE = 128
REFUSALS = (ForbiddenError, MethodNotAllowedError, NotFoundError)
"""Answers that waiting alone does not change."""

FAULTS = 3
"""So many failures of a server at its first answer are one: a conversion webhook may be gone."""


class Informer(Generic[T]):
    """A copy of the selected objects that follows the server."""

    def __init__(
        self, client: Client, kind: type[T] | Resource[T], which: Selection | None = None
    ) -> None:
        self.resource = resource_of(kind)
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        """Set once it has the whole picture, or was refused it: the kind is not served, or not for
        us, or the server has failed at it a few times. It goes on asking.
        """
        self._faults = 0
        self.lists = 0
        self.last_error: ClientError | None = None
        self._store: Store[T] = Store()
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._unfit: dict[str, MalformedError] = {}
        self._unfit_handlers: list[UnfitHandler] = []
        self._subscriptions: list[Subscription[T]] = []
        self._reflector = Reflector(
            client, self.resource, which or Selection(), sink=self, report=self._report
        )

    @property
    def refusal(self) -> ClientError | None:
        """Why it has nothing, if it was refused."""
        refused = isinstance(self.last_error, REFUSALS) and not self.synced.is_set()
        return self.last_error if refused else None

    @property
    def objects(self) -> Mapping[str, T]:
        """The objects by `namespace/name`, or by name; a live view."""
        return self._store

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call that for everything there is now, and for every change from now on."""
        for item in self._store.values():
            handler(Change("added", new=item))
        self._handlers.append(handler)

    def listen(self, handler: Callable[[Change[T]], None]) -> list[T]:
        """Everything there is now, for whoever takes it in turns; the handler is called for every
        change from now on.
        """
        self._handlers.append(handler)
        return list(self._store.values())

    def on_unfit(self, handler: UnfitHandler) -> None:
        """Call that for every object that is there but does not fit its type, now and later.

        One that fits again, or is told as deleted, is heard of as a change.
        """
        for key, error in self._unfit.items():
            handler(key, error)
        self._unfit_handlers.append(handler)

    def subscribe(self, bound: int = QUEUE) -> Subscription[T]:
        """Everything there is now, then every change; at most `bound` of them wait unread."""
        made = Subscription(self._store.values(), bound, self._subscriptions.remove)
        self._subscriptions.append(made)
        return made

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await self._reflector.run()

    async def replace(self, items: Iterable[T], unfit: frozenset[str]) -> None:
        """Take a complete list from the reflector."""
        self.lists += 1
        turns, listed = Turns(), dict[str, T]()
        for item in items:
            listed[key_of(item)] = item
            if turns.is_over:
                await turns.next()
        await self._publish(self._store.replace(listed, keep=unfit), turns)
        for key in [key for key in self._unfit if key not in unfit]:
            del self._unfit[key]
            self._tell_unfit(key, None)
        self.last_error = None
        self.synced.set()
        self.answered.set()

    async def apply(self, event: WatchEvent[T]) -> None:
        """Take one event from the reflector."""
        if event.object is not None and self._unfit:
            self._unfit.pop(key_of(event.object), None)
        await self._publish(self._store.apply(event))

    async def _publish(self, changes: Iterable[Change[T]], turns: Turns | None = None) -> None:
        """Tell those who listened before; whoever joins meanwhile has seen the store after it."""
        handlers, subscriptions = tuple(self._handlers), tuple(self._subscriptions)
        if not handlers and not subscriptions:
            return
        for change in changes:
            for handler in handlers:
                handler(change)
            for subscription in subscriptions:
                await subscription.put(change)
            if turns is not None and turns.is_over:
                await turns.next()

    def _report(self, error: ClientError) -> None:
        is_news = not isinstance(error, REFUSALS) or str(error) != str(self.last_error)
        self.last_error = error
        if is_news:  # a refusal is the same at every try
            log.warning("informer of %s: %s", self.resource, error)
        self._faults += isinstance(error, ServerFaultError)
        if isinstance(error, REFUSALS) or self._faults >= FAULTS:
            self.answered.set()
        if isinstance(error, MalformedError) and error.key:
            self._unfit[error.key] = error
            self._tell_unfit(error.key, error)

    def _tell_unfit(self, key: str, error: MalformedError | None) -> None:
        for handler in tuple(self._unfit_handlers):
            handler(key, error)


Wanted = tuple[str, str, bool, Selection]


class Informers:
    """Informers of one client; an informer that fails takes the others and the body with it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[Wanted, object] = {}
        self._synced: list[asyncio.Event] = []
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []

    def of(self, kind: type[T] | Resource[T], which: Selection | None = None) -> Informer[T]:
        """The informer of those objects, started if it is the first time that anyone asks."""
        resource, which = resource_of(kind), which or Selection()
        wanted = (resource.api_version, resource.plural, resource.type is dict, which)
        if wanted not in self._informers:
            self._informers[wanted] = self._start(Informer(self._client, resource, which))
        return cast("Informer[T]", self._informers[wanted])

    async def synced(self) -> None:
        """Wait until each of them has the whole picture once."""
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
            # The body's own error goes on as it is, not wrapped into a group of errors.
            await self._group.__aexit__(None, None, None)
