"""Real peers of the image manager as fixtures: runtimes, a guarded registry, images to pull."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bayplan.images.platforms import host_platform
from bayplan.images.runtime.cri import CriRuntime
from tests.images.manager_fixture import ManagerFixture
from tests.images.parts.layouts import WINDOWS_BUILDS, ImageBuilder, linux, tar_of, windows
from tests.images.parts.registry import Registry, missing, running_registry
from tests.images.peers import containerd
from tests.images.peers.service import running_bayplan_cri
from tests.patience import PATIENCE

_numbers = itertools.count()


@dataclass(frozen=True)
class Pushed:
    """An image in a registry, and the id by which runtimes know it."""

    name: str
    id: str


Push = Callable[[Registry, str], Pushed]


@pytest.fixture(scope="session")
def guarded_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that wants a user and a password."""
    _need_registry()
    with running_registry(tmp_path_factory.mktemp("guarded"), guarded=True) as running:
        yield running


@pytest.fixture(scope="session")
def containerd_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of a real containerd."""
    if reason := containerd.why_not():
        pytest.skip(f"cannot be shown here: {reason}")
    with containerd.running_containerd(tmp_path_factory.mktemp("containerd")) as socket:
        yield socket


@pytest.fixture(scope="session")
def bayplan_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of our own service, in a process of its own."""
    with running_bayplan_cri(tmp_path_factory.mktemp("bayplan")) as socket:
        yield socket


@pytest.fixture(params=["bayplan", "containerd"])
def runtime_socket(request: pytest.FixtureRequest) -> str:
    """The socket of each runtime in turn."""
    socket = request.getfixturevalue(f"{request.param}_socket")
    assert isinstance(socket, str)
    return socket


@pytest.fixture
async def runtime(runtime_socket: str) -> AsyncIterator[CriRuntime]:
    """Each runtime in turn."""
    async with CriRuntime(runtime_socket, timeout=PATIENCE) as connected:
        yield connected


@pytest.fixture
async def fixture(runtime: CriRuntime, tmp_path: Path) -> ManagerFixture:
    """An image manager before each runtime in turn."""
    return ManagerFixture(runtime, tmp_path / "state")


@pytest.fixture
def push(tmp_path: Path) -> Push:
    """Pushes an image for this machine that no other test knows."""

    def push_one(registry: Registry, name: str) -> Pushed:
        builder = ImageBuilder()
        layer = tar_of(("unique", f"{tmp_path} {next(_numbers)}".encode()))
        entry = builder.entry(layer, platform=linux(host_platform().architecture))
        manifest = json.loads(builder.blobs[str(entry["digest"])])
        pushed = registry.push(builder, builder.index(entry), name)
        return Pushed(pushed, manifest["config"]["digest"])

    return push_one


def push_for_all(registry: Registry, name: str) -> str:
    """Push an index of linux variants and Windows builds; gives the name to pull it by."""
    builder = ImageBuilder()
    platforms = [linux("amd64"), linux("arm64", "v8"), *map(windows, WINDOWS_BUILDS)]
    entries = [
        builder.entry(tar_of(("which", f"{name} {platform}".encode())), platform=platform)
        for platform in platforms
    ]
    return registry.push(builder, builder.index(*entries), name)


def _need_registry() -> None:
    if absent := missing():
        pytest.skip(f"cannot be shown here without {absent} (Debian packages)")
