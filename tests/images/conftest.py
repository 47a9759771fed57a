from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.images.parts.hostile import HostileRegistry, running_hostile
from tests.images.parts.layouts import ImageBuilder
from tests.images.parts.registry import Registry, missing, running_registry
from tests.images.parts.service import Service, running_service, settings
from tests.images.peers.fixtures import (
    bayplan_socket,
    containerd_socket,
    fixture,
    guarded_registry,
    push,
    runtime,
    runtime_socket,
)

__all__ = [
    "bayplan_socket",
    "containerd_socket",
    "fixture",
    "guarded_registry",
    "push",
    "runtime",
    "runtime_socket",
]


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    if absent := missing():
        pytest.skip(f"cannot be shown here without {absent} (Debian packages)")
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(tmp_path / "store", settings(tmp_path)) as running:
        yield running


@pytest.fixture
async def hostile() -> AsyncIterator[HostileRegistry]:
    async with running_hostile(ImageBuilder()) as running:
        yield running
