"""Watchers that read slowly: they miss nothing when they resume, and cost little meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.http.wire.protocol import CoalescingTransport
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.rest.reads import Watcher, WatchOptions
from bayplan.embedded.apiserver.rest.selectors import SelectionPredicate
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from tests.embedded.apiserver.store.steps import Step, carry_out, new_store

PODS = next(kind for kind in BUILTIN if kind.resource == "pods")
LARGE = 200 * 1024
TURNS = st.lists(st.tuples(st.sampled_from("wwwrrt"), st.sampled_from("abcd")), max_size=60)
"""Writes, reads, and the time that a watch may last coming to its end."""


class Client:
    """Watches, remembers what it saw, and watches on from there."""

    def __init__(self, store: ApiObjectStore) -> None:
        self._store = store
        self._now = 0.0
        self._chunks: AsyncIterator[bytes] | None = None
        self.version = "0"
        self.known: dict[str, str] = {}

    def time_is_up(self) -> None:
        """From now on the present watch only says what it has begun to say."""
        self._now += 100.0

    async def read(self) -> bool:
        """Take one piece of the stream; whether there was one."""
        if self._chunks is None:
            self._chunks = self._watch()
        piece = await self._next(self._chunks)
        if piece is None:
            self._chunks = None
            return False
        for line in piece.splitlines():
            self._see(json.loads(line))
        return True

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Return the next piece if it comes within a few turns of the event loop."""
        reading = asyncio.ensure_future(anext(chunks, None))
        for _ in range(10):
            await asyncio.sleep(0)
        reading.cancel()
        (piece,) = await asyncio.gather(reading, return_exceptions=True)
        return piece if isinstance(piece, bytes) else None

    def _watch(self) -> AsyncIterator[bytes]:
        if self.version == "0":
            self.known = {}
        options = WatchOptions(
            SelectionPredicate(), self.version, bookmarks=True, timeout=100.0, bookmark_seconds=30.0
        )
        return Watcher(self._store, PODS, options, lambda: self._now).chunks()

    def _see(self, event: dict[str, Any]) -> None:
        meta = event["object"]["metadata"]
        if event["type"] == "DELETED":
            del self.known[meta["name"]]
        elif event["type"] != "BOOKMARK":
            self.known[meta["name"]] = meta["resourceVersion"]
        assert int(meta["resourceVersion"]) >= int(self.version)
        self.version = meta["resourceVersion"]


@given(TURNS)
def test_a_blocked_watcher_that_resumes_misses_nothing(turns: list[tuple[str, str]]) -> None:
    async def story() -> None:
        store = new_store(None, history=1000)
        carry_out(store, Step("put", "pods", "z", 0))
        client = Client(store)
        await client.read()
        for number, (turn, name) in enumerate(turns):
            if turn == "w":
                action = "remove" if number % 5 == 4 else "put"
                carry_out(store, Step(action, "pods", name, number))
            elif turn == "r":
                await client.read()
            else:
                client.time_is_up()
        while await client.read():
            pass
        while await client.read():  # and once more, from where the last watch ended
            pass
        there = {entry.key.name: str(entry.revision) for entry in store.list("pods")}
        assert client.known == there

    asyncio.run(story())


async def test_a_first_list_is_made_as_it_is_read() -> None:
    store = new_store(None, history=1000)
    for number in range(50):
        carry_out(store, Step("put", "pods", f"p{number:02}", number))
    made: list[str] = []

    def render(entry: StoreEntry) -> bytes:
        made.append(entry.key.name)
        return b" " * LARGE

    chunks = Watcher(
        store, PODS, WatchOptions(SelectionPredicate(), render=render), lambda: 0.0
    ).chunks()
    await anext(chunks)
    assert len(made) <= 3, "a reader that has taken one piece has been made two"


class Blocked(asyncio.Protocol):
    """Notes that its reader does not read."""

    paused = False

    def pause_writing(self) -> None:
        self.paused = True


async def test_who_writes_much_is_told_to_wait_within_the_same_turn() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        transport, protocol = await loop.create_connection(Blocked, sock=ours)
        coalescing = CoalescingTransport(transport, loop, lambda: None)
        for _ in range(40):
            if not protocol.paused:
                coalescing.write(b" " * LARGE)
        assert protocol.paused, "nobody noticed that nothing is read"
        assert transport.get_write_buffer_size() < 10 * LARGE
        coalescing.abort()
