"""Live and virtual runs take turns with one data file, and time never goes back in it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bayplan.base.clock import START
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.lab import LiveLab, VirtualLab, run_virtually
from tests.lab.test_lab import spec


async def _live(data: Path) -> datetime:
    async with LiveLab(spec(), ServerConfig(data=data)) as lab:
        await lab.run(0)
        return lab.clock.now()


async def _virtual(data: Path, seconds: float) -> tuple[datetime, datetime]:
    async with VirtualLab(spec(), data=data) as lab:
        start = lab.clock.now()
        await lab.run(seconds)
        return start, lab.clock.now()


def test_a_virtual_run_goes_on_after_a_live_one(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    assert run_virtually(_virtual(data, 600)) == (START, START + timedelta(minutes=10))
    live = asyncio.run(_live(data))
    start, _ = run_virtually(_virtual(data, 600))
    assert start >= live


def test_a_live_run_refuses_what_is_still_to_come(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    asyncio.run(_live(data))
    _, end = run_virtually(_virtual(data, 3600))
    assert end > datetime.now(UTC)
    with pytest.raises(StoreError, match="in the future; use it in virtual time only"):
        asyncio.run(_live(data))
