"""A watch's stream: lines of JSON in, typed events out.

An event that says ERROR ends the stream with the exception it stands for (410 most of all). A
bookmark carries no object, only how far the stream has come. An object that does not fit its type
is given to `unfit`, by default an exception; if that lets it pass, its event has no object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, Literal, Self

import msgspec

from bayplan.client.errors import UNREADABLE, MalformedError, Status, TooLargeError, error_from
from bayplan.client.objects import Identity, Unfit, decode, decode_object, refuse, version_of
from bayplan.client.resources import Resource, T
from bayplan.client.wire.calling import Answer
from bayplan.kube.meta import Struct

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
