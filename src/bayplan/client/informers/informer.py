"""An informer: a local, current copy of some objects, and word of every change to it.

informer = Informer(client, Pod, Selection(namespace="shop"))
informer.on_change(print)                     # called in order, before the next one is read
...
await informer.synced.wait()
with informer.subscribe() as changes:         # or as an iterator, with back-pressure
    async for change in changes: ...
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Generic

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
from bayplan.client.informers.changes import Change
from bayplan.client.informers.reflector import Reflector
from bayplan.client.informers.store import Store
from bayplan.client.informers.subscriptions import Subscription
from bayplan.client.objects import key_of
from bayplan.client.resources import Resource, T, resource_of
from bayplan.client.verbs.reading import Selection
from bayplan.client.verbs.watching import WatchEvent

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
