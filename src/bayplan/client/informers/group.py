"""Many informers under one roof: shared by whoever asks for the same thing, stopped together.

async with Informers(client) as informers:
    pods, nodes = informers.of(Pod), informers.of(Node)
    await informers.synced()
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self, cast

from bayplan.client.client import Client
from bayplan.client.informers.informer import Informer
from bayplan.client.resources import Resource, T, resource_of
from bayplan.client.verbs.reading import Selection

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
