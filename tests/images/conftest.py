"""Real peers of the image manager, started once for a test run and stopped at its end."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from bayplan.images.platforms.host import host_platform
from bayplan.images.runtime.cri import CriRuntime
from tests.images.desk import Desk
from tests.images.peers import containerd, registry
from tests.images.peers.layouts import Layout, linux, write_layout
from tests.images.peers.registry import Registry, running_registry

_numbers = itertools.count()


@pytest.fixture(scope="session")
def open_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that anybody may pull from."""
    _need(registry.is_installed(), "docker-registry and skopeo")
    with running_registry(tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture(scope="session")
def guarded_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that wants a user and a password."""
    _need(registry.is_installed(), "docker-registry and skopeo")
    with running_registry(tmp_path_factory.mktemp("guarded"), guarded=True) as started:
        yield started


@pytest.fixture(scope="session")
def containerd_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of a real containerd."""
    _need(containerd.is_installed(), "containerd")
    with containerd.running_containerd(tmp_path_factory.mktemp("containerd")) as socket:
        yield socket


@pytest.fixture(params=["containerd"])
def runtime_socket(request: pytest.FixtureRequest) -> str:
    """The socket of each runtime in turn."""
    socket = request.getfixturevalue(f"{request.param}_socket")
    assert isinstance(socket, str)
    return socket


@pytest.fixture
async def runtime(runtime_socket: str) -> AsyncIterator[CriRuntime]:
    """Each runtime in turn."""
    async with CriRuntime(runtime_socket, timeout=30) as connected:
        yield connected


@pytest.fixture
async def desk(runtime: CriRuntime, tmp_path: Path) -> Desk:
    """An image manager before each runtime in turn."""
    return Desk(runtime, tmp_path / "state")


LayoutMaker = Callable[[], Layout]


@pytest.fixture
def fresh_layout(tmp_path_factory: pytest.TempPathFactory) -> LayoutMaker:
    """Makes images for this machine that no other test knows."""

    def make() -> Layout:
        number = next(_numbers)
        folder = tmp_path_factory.mktemp("layout")
        return write_layout(folder, [linux(host_platform().architecture)], f"{folder} {number}")

    return make


def _need(installed: bool, what: str) -> None:
    if not installed:
        pytest.skip(f"{what} cannot be installed here")
