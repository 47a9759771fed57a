"""A page of made-up rows: what no cluster would show, or not so fast.

The server, its stream and its numbering are the real ones; only the rows are made up.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from bayplan.ui import encoder
from bayplan.ui.backend import NotAvailableError
from bayplan.ui.changelog import ChangeListener, PageChangeLog
from bayplan.ui.encoder import Encoded, PageSource
from bayplan.ui.server import Guard, PageServerOptions, serve
from bayplan.ui.tables import COLUMNS, Row, Tables
from tests.patience import PATIENCE

T = TypeVar("T")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(table: str, **values: Any) -> Row:
    """A row of a table; what is not said is empty."""
    return [values.get(column, _EMPTY.get(column, "")) for column in COLUMNS[table]]


_EMPTY: Mapping[str, Any] = {
    **dict.fromkeys(("cpu", "memory", "podsMax", "volumes", "priority", "size", "target"), 0),
    **dict.fromkeys(("used", "count", "upcoming"), 0),
    **dict.fromkeys(("taints", "missing", "pods", "steps", "pending", "removals"), ()),
    **{name: {} for name in ("quota", "allocated", "reserved", "requested", "deserved")},
    **dict.fromkeys(("min", "max", "price", "limit", "weight", "share", "cost"), None),
    "guaranteed": {},
    "cordoned": False,
    "over": False,
}


_STARTS = itertools.count(1_000_000, 1_000_000)
"""Where each counts its changes from: as with servers that were started at other times."""


class FakeBackend:
    """A backend of made-up rows."""

    def __init__(self, name: str = "made-up") -> None:
        self.name = name
        self.tables = Tables()
        self.change_log = PageChangeLog(start=next(_STARTS))
        self.explanation = b"{}"
        self.notes: list[str] = []
        self.states = 0
        """How often the whole state was asked for."""

    def put(self, table: str, rows: Sequence[Row]) -> None:
        """Set rows, and send them to all listeners."""
        for one in rows:
            self.tables.set(table, one)
        seq = self.change_log.seq + 1
        data = encoder.change(seq, NOW, self.tables.take_changes())
        self.change_log.add(encoder.as_event(seq, data))

    async def state(self, at: float | None) -> Encoded:
        if at is not None:
            raise NotAvailableError("at: only now")
        self.states += 1
        source = PageSource("live", self.name, live=True)
        return encoder.PageState(
            self.change_log.seq, NOW, source, self.notes, self.tables
        ).encoded()

    def listen(self, after: int) -> ChangeListener | None:
        return self.change_log.listen(after)

    async def changes(self, after: int, most: int) -> Encoded:
        raise NotAvailableError(f"{after} {most}")

    async def timeline(self) -> Encoded:
        raise NotAvailableError("no time line")

    async def explain(self, pod: str, after: int | None) -> bytes:
        return self.explanation


class PageServerThread:
    """The page's server in a thread of its own; `run` runs a coroutine there."""

    def __init__(self, backend: FakeBackend, token: str = "") -> None:
        self.backend = backend
        self._token = token
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._stop: Callable[[], Coroutine[Any, Any, object]] | None = None
        self.url = ""

    def serve(self) -> str:
        """Begin, at the same address as before if there was one."""
        how = PageServerOptions(
            port=int(self.url[:-1].rpartition(":")[2] or 0), guard=Guard(token=self._token)
        )

        async def begin() -> str:
            context = serve(self.backend, how)
            url = await context.__aenter__()
            self._stop = lambda: context.__aexit__(None, None, None)
            return url

        self.url = self.run(begin())
        return self.url

    def close(self) -> None:
        """End serving; the port stays ours to come back to."""
        if self._stop is not None:
            self.run(self._stop())
            self._stop = None

    def put(self, table: str, rows: Sequence[Row]) -> None:
        """Set rows in the server's own thread."""

        async def put_rows() -> None:
            self.backend.put(table, rows)

        self.run(put_rows())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    @contextmanager
    def running(self) -> Iterator[str]:
        self._thread.start()
        try:
            yield self.serve()
        finally:
            self.close()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
