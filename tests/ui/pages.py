"""Pages of small clusters, and what a browser would make of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp

from bayplan.kube.meta import KubeObject
from bayplan.ui.answers import PageAnswers
from bayplan.ui.dump import dump_page
from bayplan.ui.page import ClusterPage
from bayplan.ui.server import Guard, PageServerOptions, serve
from bayplan.ui.tables import COLUMNS

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Noon:
    """A clock that stands at noon."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def page_of(*objects: KubeObject, answers: PageAnswers | None = None) -> ClusterPage:
    """A page that has been drawn."""
    page = dump_page(objects, "test", Noon(), answers=answers)
    page.picture.draw_all()
    return page


def rows(page: ClusterPage, table: str) -> dict[str, dict[str, Any]]:
    """By id the rows of a table, by column."""
    named = COLUMNS[table]
    return {
        key: dict(zip(named, row, strict=True)) for key, row in page.picture.tables[table].items()
    }


@asynccontextmanager
async def browsing(page: ClusterPage, guard: Guard | None = None) -> AsyncIterator[Browser]:
    """A page that is served, and a client of it."""
    async with (
        page.running(),
        serve(page, PageServerOptions(guard=guard or Guard())) as url,
        aiohttp.ClientSession(url) as session,
    ):
        yield Browser(session)


class Browser:
    """What the page's script does: fetch the state, then apply changes to it."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def state(self) -> dict[str, Any]:
        async with self.session.get("api/state") as answer:
            assert answer.status == 200
            found: dict[str, Any] = await answer.json()
            return found

    async def changes(self, after: int) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Events of the stream with their data."""
        async with self.session.get("api/stream", params={"after": after}) as answer:
            kind = ""
            async for line in answer.content:
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])


def tables_of(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By table and id the rows of a state."""
    return {name: {row[0]: row for row in table["rows"]} for name, table in state["tables"].items()}


def apply(tables: dict[str, dict[str, Any]], change: dict[str, Any]) -> None:
    """Apply a change as the page does."""
    for name, changed in change.get("set", {}).items():
        tables[name].update({row[0]: row for row in changed})
    for name, dropped in change.get("drop", {}).items():
        for key in dropped:
            tables[name].pop(key, None)


def drawn(objects: Sequence[KubeObject]) -> dict[str, dict[str, Any]]:
    """The tables of a cluster, drawn afresh."""
    return {name: dict(found) for name, found in page_of(*objects).picture.tables}
