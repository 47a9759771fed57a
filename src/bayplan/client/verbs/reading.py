"""Get, list, watch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bayplan.client.errors import GoneError
from bayplan.client.objects import (
    Page,
    RawPage,
    Unfit,
    decode,
    decode_object,
    decode_page,
    refuse,
)
from bayplan.client.resources import Resource, T, resource_of
from bayplan.client.verbs.base import Verbs, without_blanks
from bayplan.client.verbs.watching import WatchStream
from bayplan.client.wire.requests import Request

PAGE = 500
PATIENCE = 30.0
"""Seconds that a watch may go on after the server should have ended it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: one namespace or all (""), by labels, by fields."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self, **others: str) -> dict[str, str]:
        """The query that asks for them."""
        return without_blanks(labelSelector=self.labels, fieldSelector=self.fields, **others)


@dataclass(frozen=True, slots=True)
class WatchFrom:
    """Where a watch starts, and for how long the server shall keep it up.

    With `initial_events` the server first sends everything there is, ending with a bookmark.
    """

    resource_version: str = ""
    initial_events: bool = False
    seconds: int = 300

    def query(self) -> dict[str, str]:
        """The query that asks for it."""
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return without_blanks(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=self.resource_version,
            timeoutSeconds=str(self.seconds),
            **(initial if self.initial_events else {}),
        )


class Reads(Verbs):
    """The verbs that change nothing."""

    async def get(self, kind: type[T] | Resource[T], *key: str) -> T:
        """The object of that namespace and name, or of that name."""
        resource = resource_of(kind)
        path = resource.path(*resource.place(key))
        return decode_object(
            await self._sender.fetch(Request("GET", path, repeatable=True)), resource
        )

    async def list(
        self,
        kind: type[T] | Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
    ) -> Page[T]:
        """All objects selected, as they were at one moment, fetched in pages of `limit`."""
        return await self.collect(kind, Selection(namespace, labels, fields), limit=limit)

    async def collect(
        self,
        kind: type[T] | Resource[T],
        which: Selection,
        *,
        limit: int = PAGE,
        unfit: Unfit = refuse,
    ) -> Page[T]:
        """As `list`, but what to do about an object that does not fit its type can be said."""
        items: list[T] = []
        version = ""
        try:
            async for page in self.pages(kind, which, limit=limit, unfit=unfit):
                items += page.items
                version = page.resource_version
        except GoneError:
            # The pages took so long that the moment was forgotten: ask for all at once.
            return await self._page(resource_of(kind), which.namespace, which.query(), unfit)
        return Page(items, version)

    async def pages(
        self,
        kind: type[T] | Resource[T],
        which: Selection | None = None,
        *,
        limit: int = PAGE,
        unfit: Unfit = refuse,
    ) -> AsyncIterator[Page[T]]:
        """The objects selected, a page at a time; GoneError if going on takes too long."""
        resource, which = resource_of(kind), which or Selection()
        token = ""
        while True:
            query = which.query(limit=str(limit), **{"continue": token})
            page = await self._page(resource, which.namespace, query, unfit)
            yield page
            if not (token := page.continue_token):
                return

    async def raw_pages(
        self,
        kind: type[T] | Resource[T],
        which: Selection | None = None,
        *,
        limit: int = PAGE,
        token: str = "",
    ) -> AsyncIterator[RawPage]:
        """The same with items that nobody has decoded yet, from where a token says."""
        which = which or Selection()
        path = resource_of(kind).path(which.namespace)
        while True:
            query = which.query(limit=str(limit), **{"continue": token})
            request = Request("GET", path, query, repeatable=True)
            page = decode(await self._sender.fetch(request), RawPage)
            yield page
            if not (token := page.metadata.continue_):
                return

    async def _page(
        self, resource: Resource[T], namespace: str, query: dict[str, str], unfit: Unfit
    ) -> Page[T]:
        request = Request("GET", resource.path(namespace), query, repeatable=True)
        return decode_page(await self._sender.fetch(request), resource, unfit)

    @asynccontextmanager
    async def watch(
        self,
        kind: type[T] | Resource[T],
        which: Selection | None = None,
        start: WatchFrom | None = None,
        *,
        unfit: Unfit = refuse,
    ) -> AsyncIterator[WatchStream[T]]:
        """The changes to the objects selected. For keeping a copy of them, use an informer."""
        resource, which, start = resource_of(kind), which or Selection(), start or WatchFrom()
        request = Request("GET", resource.path(which.namespace), which.query(**start.query()))
        async with self._sender.stream(request, start.seconds + PATIENCE) as answer:
            yield WatchStream(answer, resource, self._limits.largest_event, unfit)
