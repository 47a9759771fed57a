"""Get, list, watch; and asking the server which resource serves a kind that we have no type for.

One request a group and version, remembered for as long as the client lives; a kind that is not in
what we remember is asked for again, since its definition may just have been installed.

An event that says ERROR ends the stream with the exception it stands for (410 most of all). A
bookmark carries no object, only how far the stream has come. An object that does not fit its type
is given to `unfit`, by default an exception; if that lets it pass, its event has no object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Literal, Self, cast

import msgspec

from bayplan.client.errors import (
    UNREADABLE,
    ClientError,
    GoneError,
    MalformedError,
    NotFoundError,
    Status,
    TooLargeError,
    error_from,
)
from bayplan.client.objects import (
    Identity,
    Page,
    RawPage,
    Unfit,
    decode,
    decode_object,
    decode_page,
    refuse,
    version_of,
)
from bayplan.client.resources import Resource, T, Untyped, known_untyped, resource_of, untyped
from bayplan.client.wire.calls import Answer, Sender
from bayplan.client.wire.transport import Limits, Request
from bayplan.kube.meta import Struct


class UnknownKindError(ClientError):
    """The server does not serve a kind of that name in that group and version."""


class ApiResource(Struct):
    """A resource as the server announces it."""

    name: str
    kind: str
    namespaced: bool = False


class ApiResourceList(Struct):
    """All resources of a group and version."""

    resources: list[ApiResource] = []


class Discovery:
    """What the server serves, as far as anyone has asked."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._known: dict[tuple[str, str], Resource[Untyped]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource[Untyped]:
        """The resource that serves that kind."""
        wanted = (api_version, kind)
        if known := known_untyped(*wanted) or self._known.get(wanted):
            return known
        await self._ask(api_version)
        if wanted not in self._known:
            raise UnknownKindError(f"the server has no kind {kind!r} in {api_version!r}")
        return self._known[wanted]

    async def serves(self, resource: Resource[T]) -> bool:
        """Whether the server has that resource now; having a type for it here does not tell."""
        wanted = (resource.api_version, resource.kind)
        await self._ask(resource.api_version)
        return wanted in self._known

    async def _ask(self, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        root = untyped(group, version, "", "").root
        try:
            body = await self._sender.fetch(Request("GET", root, repeatable=True))
        except NotFoundError:
            return
        for found in decode(body, ApiResourceList).resources:
            if "/" not in found.name:
                self._known[api_version, found.kind] = untyped(
                    group, version, found.name, found.kind, namespaced=found.namespaced
                )


class Verbs:
    """Base of the client's verbs."""

    def __init__(self, sender: Sender, limits: Limits) -> None:
        self._sender = sender
        self._limits = limits
        self._discovery = Discovery(sender)

    async def discover(self, api_version: str, kind: str) -> Resource[Untyped]:
        """The resource that serves that kind, for kinds that have no type here."""
        return await self._discovery.resource(api_version, kind)

    async def serves(self, resource: Resource[T]) -> bool:
        """Whether the server has that resource now, such as that of a definition."""
        return await self._discovery.serves(resource)

    async def _resource_for(self, item: T, resource: Resource[T] | None) -> Resource[T]:
        if resource is not None:
            return resource
        if not isinstance(item, dict):
            return resource_of(type(item))
        api_version, kind = item.get("apiVersion"), item.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise TypeError("an object without a type needs its apiVersion and kind")
        return cast("Resource[T]", await self.discover(api_version, kind))


def without_blanks(**query: str) -> dict[str, str]:
    """A query of those parameters that say something."""
    return {key: value for key, value in query.items() if value}


INITIAL_EVENTS_END = "k8s.io/initial-events-end"
EventKind = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "UNFIT"]


class Frame(Struct):
    """A line of the stream, its object not decoded yet."""

    type: str
    object: msgspec.Raw


_read_frame = msgspec.json.Decoder(Frame).decode


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """Something that happened. A bookmark, and what does not fit its type, has no object."""

    type: EventKind
    object: T | None
    resource_version: str
    initial_events_end: bool = False


class WatchStream(Generic[T]):
    """The events of one watch, in the server's order."""

    def __init__(
        self, answer: Answer, resource: Resource[T], largest: int, unfit: Unfit = refuse
    ) -> None:
        self._answer = answer
        self._resource = resource
        self._lines = Lines(answer, largest)
        self._unfit = unfit

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        line = await self._lines.next_line()
        if line is None:
            raise StopAsyncIteration
        return self._event(line)

    def _event(self, line: bytes) -> WatchEvent[T]:
        frame = self._frame(line)
        match frame.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                return self._object_event(frame.type, frame.object)
            case "BOOKMARK":
                return self._bookmark(frame.object)
            case "ERROR":
                raise error_from(decode(frame.object, Status), str(self._answer.request))
            case _:
                raise MalformedError(f"{self._answer.request}: unknown event {frame.type[:32]!r}")

    def _frame(self, line: bytes) -> Frame:
        try:
            return _read_frame(line)
        except UNREADABLE:
            raise MalformedError(f"{self._answer.request}: not a watch event") from None

    def _object_event(
        self, kind: Literal["ADDED", "MODIFIED", "DELETED"], raw: msgspec.Raw
    ) -> WatchEvent[T]:
        try:
            item = decode_object(raw, self._resource)
        except MalformedError as error:
            if kind == "DELETED":
                raise  # which object is gone only a new list can tell for certain
            self._unfit(error)
            return msgspec.structs.replace(self._bookmark(raw), type="UNFIT")
        return WatchEvent(kind, item, version_of(item))

    def _bookmark(self, raw: msgspec.Raw) -> WatchEvent[T]:
        meta = decode(raw, Identity).metadata
        ended = meta.annotations.get(INITIAL_EVENTS_END) == "true"
        return WatchEvent("BOOKMARK", None, meta.resource_version, ended)


class Lines:
    """The lines of an answer, each no longer than a bound. A last, cut line is not one."""

    def __init__(self, answer: Answer, largest: int) -> None:
        self._answer = answer
        self._largest = largest
        self._ready: deque[bytes] = deque()
        self._pending: list[bytes] = []
        self._pending_size = 0

    async def next_line(self) -> bytes | None:
        """The next line that is not empty; None at the end."""
        while not self._ready:
            if not (chunk := await self._answer.next_chunk()):
                return None
            self._take(chunk)
        return self._ready.popleft()

    def _take(self, chunk: bytes) -> None:
        for ended, part in _parts(chunk):
            self._pending.append(part)
            self._pending_size += len(part)
            if self._pending_size > self._largest:
                bound = f"{self._largest} bytes"
                raise TooLargeError(f"{self._answer.request}: an event bigger than {bound}")
            if ended:
                self._end_line()

    def _end_line(self) -> None:
        if line := b"".join(self._pending):
            self._ready.append(line)
        self._pending, self._pending_size = [], 0


def _parts(chunk: bytes) -> Iterator[tuple[bool, bytes]]:
    """The pieces between line ends, each with whether a line end follows it."""
    *whole, rest = chunk.split(b"\n")
    yield from ((True, part) for part in whole)
    yield False, rest


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
