"""Events do not pile up for ever."""

from __future__ import annotations

import pytest

from bayplan.base.clock import LoopClock
from bayplan.embedded.apiserver.controllers.garbage import EventTtlController
from bayplan.embedded.apiserver.rest import writes
from tests.embedded.apiserver.backends import call_of, new_backend

pytestmark = pytest.mark.virtual


async def test_events_older_than_an_hour_go_when_newer_ones_come() -> None:
    backend, clock = await new_backend(), LoopClock()
    backend.clock = clock
    reaper = EventTtlController(backend)
    reaper.start()

    async def happen(name: str) -> None:
        await writes.create(backend, call_of(backend, "events"), {"metadata": {"name": name}})
        await reaper.settled()

    await happen("old")
    await clock.sleep(50 * 60)
    await happen("recent")
    assert [entry.key.name for entry in backend.store.list("events")] == ["old", "recent"]
    await clock.sleep(20 * 60)
    await happen("new")
    assert [entry.key.name for entry in backend.store.list("events")] == ["new", "recent"]
    await reaper.stop()
    backend.store.close()
