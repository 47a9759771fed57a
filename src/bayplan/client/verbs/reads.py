"""Get, list, watch; and discovery of the resource of a kind that has no type here.

Discovery sends one request per group and version and keeps the result while the client lives; a
kind that is not in it is looked up again, since its definition may just have been installed.

An ERROR event ends the stream with its exception (mostly 410). A bookmark has no object, only a
resource version. The error of a malformed object is passed to `malformed`, which by default raises
it; if it does not, the event has no object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Literal, Self, cast

import msgspec

from bayplan.client.errors import (
    DECODE_ERRORS,
    ClientError,
    GoneError,
    MalformedError,
    NotFoundError,
    Status,
    TooLargeError,
    error_from,
)
from bayplan.client.objects import (
    MalformedHandler,
    Page,
    PartialObjectMetadata,
    RawPage,
    decode,
    decode_object,
    decode_page,
    raise_malformed,
    version_of,
)
from bayplan.client.resources import Resource, T, Untyped, known_untyped, resource_of, untyped
from bayplan.client.wire.calls import ResponseBody, RetryingSender
from bayplan.client.wire.transport import Request, RequestLimits
from bayplan.kube.meta import Struct


class UnknownKindError(ClientError):
    """The server has no kind of that name in that group and version."""


class ApiResource(Struct):
    """A resource of the server's discovery document."""

    name: str
    kind: str
    namespaced: bool = False


class ApiResourceList(Struct):
    """The discovery document of a group and version."""

    resources: list[ApiResource] = []


class Discovery:
    """The resources that the server has, as far as they were looked up."""

    def __init__(self, sender: RetryingSender) -> None:
        self._sender = sender
        self._known: dict[tuple[str, str], Resource[Untyped]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource[Untyped]:
        """Return the resource of a kind."""
        wanted = (api_version, kind)
        if known := known_untyped(*wanted) or self._known.get(wanted):
            return known
        await self._look_up(api_version)
        if wanted not in self._known:
            raise UnknownKindError(f"the server has no kind {kind!r} in {api_version!r}")
        return self._known[wanted]

    async def serves(self, resource: Resource[T]) -> bool:
        """Whether the server has that resource now."""
        wanted = (resource.api_version, resource.kind)
        await self._look_up(resource.api_version)
        return wanted in self._known

    async def _look_up(self, api_version: str) -> None:
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

    def __init__(self, sender: RetryingSender, limits: RequestLimits) -> None:
        self._sender = sender
        self._limits = limits
        self._discovery = Discovery(sender)

    async def discover(self, api_version: str, kind: str) -> Resource[Untyped]:
        """Return the resource of a kind that has no type here."""
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


def non_empty(**query: str) -> dict[str, str]:
    """Return the query parameters that are not empty."""
    return {key: value for key, value in query.items() if value}


INITIAL_EVENTS_END = "k8s.io/initial-events-end"
WatchEventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "MALFORMED"]


class RawWatchEvent(Struct):
    """A line of the watch stream whose object is not decoded yet."""

    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(RawWatchEvent).decode


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """An event of a watch. A bookmark and a malformed object's event have no object."""

    type: WatchEventType
    object: T | None
    resource_version: str
    initial_events_end: bool = False


class WatchStream(Generic[T]):
    """The events of one watch, in the server's order."""

    def __init__(
        self,
        answer: ResponseBody,
        resource: Resource[T],
        largest: int,
        malformed: MalformedHandler = raise_malformed,
    ) -> None:
        self._answer = answer
        self._resource = resource
        self._lines = LineReader(answer, largest)
        self._malformed = malformed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        line = await self._lines.next_line()
        if line is None:
            raise StopAsyncIteration
        return self._event(line)

    def _event(self, line: bytes) -> WatchEvent[T]:
        raw = self._raw_event(line)
        match raw.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                return self._object_event(raw.type, raw.object)
            case "BOOKMARK":
                return self._bookmark(raw.object)
            case "ERROR":
                raise error_from(decode(raw.object, Status), str(self._answer.request))
            case _:
                raise MalformedError(f"{self._answer.request}: unknown event {raw.type[:32]!r}")

    def _raw_event(self, line: bytes) -> RawWatchEvent:
        try:
            return _decode_event(line)
        except DECODE_ERRORS:
            raise MalformedError(f"{self._answer.request}: not a watch event") from None

    def _object_event(
        self, kind: Literal["ADDED", "MODIFIED", "DELETED"], raw: msgspec.Raw
    ) -> WatchEvent[T]:
        try:
            item = decode_object(raw, self._resource)
        except MalformedError as error:
            if kind == "DELETED":
                raise  # only a new list shows for certain which object was deleted
            self._malformed(error)
            return msgspec.structs.replace(self._bookmark(raw), type="MALFORMED")
        return WatchEvent(kind, item, version_of(item))

    def _bookmark(self, raw: msgspec.Raw) -> WatchEvent[T]:
        meta = decode(raw, PartialObjectMetadata).metadata
        ended = meta.annotations.get(INITIAL_EVENTS_END) == "true"
        return WatchEvent("BOOKMARK", None, meta.resource_version, ended)


class LineReader:
    """Reads the lines of a response, each within a size limit; a cut last line is dropped."""

    def __init__(self, answer: ResponseBody, largest: int) -> None:
        self._answer = answer
        self._largest = largest
        self._ready: deque[bytes] = deque()
        self._pending: list[bytes] = []
        self._pending_size = 0

    async def next_line(self) -> bytes | None:
        """Return the next line that is not empty; None at the end."""
        while not self._ready:
            if not (chunk := await self._answer.next_chunk()):
                return None
            self._split(chunk)
        return self._ready.popleft()

    def _split(self, chunk: bytes) -> None:
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
    """Yield the parts between line ends, each with whether a line end follows it."""
    *complete, rest = chunk.split(b"\n")
    yield from ((True, part) for part in complete)
    yield False, rest


PAGE_SIZE = 500
EXTRA_WATCH_SECONDS = 30.0
"""How long a watch may be silent after the server should have ended it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects objects of a kind: in one namespace or all (""), by labels, by fields."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self, **others: str) -> dict[str, str]:
        """Return the query parameters."""
        return non_empty(labelSelector=self.labels, fieldSelector=self.fields, **others)


@dataclass(frozen=True, slots=True)
class WatchFrom:
    """The start of a watch, and how long the server keeps it open.

    With `initial_events` the server first sends all objects, ending with a bookmark.
    """

    resource_version: str = ""
    initial_events: bool = False
    seconds: int = 300

    def query(self) -> dict[str, str]:
        """Return the query parameters."""
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return non_empty(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=self.resource_version,
            timeoutSeconds=str(self.seconds),
            **(initial if self.initial_events else {}),
        )


class ReadVerbs(Verbs):
    """The verbs that read objects."""

    async def get(self, kind: type[T] | Resource[T], *key: str) -> T:
        """Return the object of that namespace and name, or of that name."""
        resource = resource_of(kind)
        path = resource.path(*resource.namespace_and_name(key))
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
        limit: int = PAGE_SIZE,
    ) -> Page[T]:
        """Return all selected objects at one resource version, fetched in pages of `limit`."""
        return await self.collect(kind, Selection(namespace, labels, fields), limit=limit)

    async def collect(
        self,
        kind: type[T] | Resource[T],
        which: Selection,
        *,
        limit: int = PAGE_SIZE,
        malformed: MalformedHandler = raise_malformed,
    ) -> Page[T]:
        """Return the same as `list`, with a handler for malformed objects."""
        items: list[T] = []
        version = ""
        try:
            async for page in self.pages(kind, which, limit=limit, malformed=malformed):
                items += page.items
                version = page.resource_version
        except GoneError:
            # The pages took so long that their resource version expired: get all at once.
            return await self._page(resource_of(kind), which.namespace, which.query(), malformed)
        return Page(items, version)

    async def pages(
        self,
        kind: type[T] | Resource[T],
        which: Selection | None = None,
        *,
        limit: int = PAGE_SIZE,
        malformed: MalformedHandler = raise_malformed,
    ) -> AsyncIterator[Page[T]]:
        """Yield the selected objects in pages; GoneError if the continue token expires."""
        resource, which = resource_of(kind), which or Selection()
        token = ""
        while True:
            query = which.query(limit=str(limit), **{"continue": token})
            page = await self._page(resource, which.namespace, query, malformed)
            yield page
            if not (token := page.continue_token):
                return

    async def raw_pages(
        self,
        kind: type[T] | Resource[T],
        which: Selection | None = None,
        *,
        limit: int = PAGE_SIZE,
        token: str = "",
    ) -> AsyncIterator[RawPage]:
        """Yield the same with items that are not decoded, beginning at a continue token."""
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
        self,
        resource: Resource[T],
        namespace: str,
        query: dict[str, str],
        malformed: MalformedHandler,
    ) -> Page[T]:
        request = Request("GET", resource.path(namespace), query, repeatable=True)
        return decode_page(await self._sender.fetch(request), resource, malformed)

    @asynccontextmanager
    async def watch(
        self,
        kind: type[T] | Resource[T],
        which: Selection | None = None,
        start: WatchFrom | None = None,
        *,
        malformed: MalformedHandler = raise_malformed,
    ) -> AsyncIterator[WatchStream[T]]:
        """Watch the selected objects. To keep a cache of them, use an informer."""
        resource, which, start = resource_of(kind), which or Selection(), start or WatchFrom()
        request = Request("GET", resource.path(which.namespace), which.query(**start.query()))
        async with self._sender.stream(request, start.seconds + EXTRA_WATCH_SECONDS) as answer:
            yield WatchStream(answer, resource, self._limits.largest_event, malformed)
