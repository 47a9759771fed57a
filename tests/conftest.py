"""What every test relies on: property tests judge behaviour, never how long it took; a test that
is marked `virtual` runs on an event loop whose waiting takes no time, and so do all tests of
`tests/simulation` that are not marked `wall`. With `--long`, tests that try a sample try many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from bayplan.kube.virtualloop import VirtualLoop

settings.register_profile("bayplan", deadline=None)
settings.load_profile("bayplan")

_SIMULATION = Path(__file__).parent / "simulation"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this suite."""
    parser.addoption("--long", action="store_true", help="try many where a sample is tried")


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Whether to try many where a sample would do."""
    return bool(request.config.getoption("--long"))


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop of a test."""
    simulated = item.path.is_relative_to(_SIMULATION) and not item.get_closest_marker("wall")
    if simulated or item.get_closest_marker("virtual"):
        return {"virtual": VirtualLoop}
    return {"wall": asyncio.new_event_loop}
