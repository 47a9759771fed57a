"""A watch's stream: lines of JSON in, typed events out.

An event that says ERROR ends the stream with the exception it stands for (410 most of all). A
bookmark carries no object, only how far the stream has come. An object that does not fit its type
is given to `unfit`, by default an exception, and passed on as a bookmark: it was seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Generic, Literal

import msgspec

from bayplan.client.errors import MalformedError, Status, TooLargeError, error_from
from bayplan.client.objects import Identity, Unfit, decode, decode_object, refuse, version_of
from bayplan.client.resources import Resource, T
from bayplan.client.transport import Answer
from bayplan.kube.meta import Struct

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
EventKind = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Frame(Struct):
    """A line of the stream, its object not decoded yet."""

    type: str
    object: msgspec.Raw


_read_frame = msgspec.json.Decoder(Frame).decode


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """Something that happened. A bookmark has no object."""

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
        self._largest = largest
        self._unfit = unfit

    async def __aiter__(self) -> AsyncIterator[WatchEvent[T]]:
        async for line in lines(self._answer, self._largest):
            yield self._event(line)

    def _event(self, line: bytes) -> WatchEvent[T]:
        frame = self._frame(line)
        match frame.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                return self._object_event(frame.type, frame.object)
            case "BOOKMARK":
                return _bookmark(frame.object)
            case "ERROR":
                raise error_from(decode(frame.object, Status), str(self._answer.request))
            case _:
                raise MalformedError(f"{self._answer.request}: unknown event {frame.type[:32]!r}")

    def _frame(self, line: bytes) -> Frame:
        try:
            return _read_frame(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise MalformedError(f"{self._answer.request}: not a watch event") from None

    def _object_event(
        self, kind: Literal["ADDED", "MODIFIED", "DELETED"], raw: msgspec.Raw
    ) -> WatchEvent[T]:
        try:
            item = decode_object(raw, self._resource)
        except MalformedError as error:
            self._unfit(error)
            return _bookmark(raw)
        return WatchEvent(kind, item, version_of(item))


def _bookmark(raw: msgspec.Raw) -> WatchEvent[T]:
    meta = decode(raw, Identity).metadata
    ended = meta.annotations.get(INITIAL_EVENTS_END) == "true"
    return WatchEvent("BOOKMARK", None, meta.resource_version, ended)


async def lines(answer: Answer, largest: int) -> AsyncIterator[bytes]:
    """The lines of a stream, each no longer than that. A last, cut line is not one."""
    pending: list[bytes] = []
    size = 0
    async for chunk in answer.chunks():
        head, *others = chunk.split(b"\n")
        pending.append(head)
        size += len(head)
        if size > largest:
            raise TooLargeError(f"{answer.request}: an event bigger than {largest} bytes")
        for part in others:
            if whole := b"".join(pending):
                yield whole
            pending, size = [part], len(part)
