"""A failed pull is continued by the next one, from what had come."""

import os
import random
import tempfile
from pathlib import Path

import grpc
import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.store.layout import PartialDownloadLimits, PartialDownloads, StoreLayout
from bayplan.kube.imagereferences import Repository
from tests.images.parts.hostile import HostileRegistry, cut_after
from tests.images.parts.layouts import tar_of
from tests.images.parts.service import QUICK, Service, running_service, settings

NOISE = random.Random(1).randbytes(300_000)
ENOUGH = 100_000


def image_of_noise(hostile: HostileRegistry, name: str = "image:1") -> str:
    """An image of a small layer and one that does not compress."""
    top = hostile.builder.image(tar_of(("small", b"x")), tar_of(("big", NOISE)))
    return hostile.tag(top, name)


class CuttingRegistry:
    """Hangs up in the middle of every big layer, and never lets it be continued."""

    def __init__(self, hostile: HostileRegistry) -> None:
        self._hostile = hostile
        self.on = True
        hostile.faults.append(self)

    async def __call__(self, request: web.Request) -> web.StreamResponse | None:
        data = self._hostile.builder.blobs.get(request.path.rpartition("/")[2], b"")
        if not self.on or "/blobs/" not in request.path or len(data) < ENOUGH:
            return None
        if request.headers.get("Range"):
            return web.Response(status=503)
        return await cut_after(request, data, ENOUGH)


def ranges(hostile: HostileRegistry) -> list[str]:
    return [one.headers["Range"] for one in hostile.asked if "Range" in one.headers]


async def fails(service: Service, name: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await service.pull(name)


def partial(service: Service) -> list[Path]:
    return list((service.root / "partial").iterdir())


async def test_the_next_pull_asks_for_the_rest_alone(
    service: Service, hostile: HostileRegistry
) -> None:
    cutting, name = CuttingRegistry(hostile), image_of_noise(hostile)
    await fails(service, name)
    assert await service.list() == []
    assert list((service.root / "blobs").iterdir()) == []
    before = len(hostile.asked)
    cutting.on = False
    await service.pull(name)
    fetched = [one for one in hostile.asked[before:] if "/blobs/" in one.path]
    assert [one.headers.get("Range") for one in fetched] == [f"bytes={ENOUGH}-"]
    assert partial(service) == []


async def test_a_restart_in_between_changes_nothing(
    tmp_path: Path, hostile: HostileRegistry
) -> None:
    cutting, name = CuttingRegistry(hostile), image_of_noise(hostile)
    async with running_service(tmp_path / "store", settings(tmp_path)) as service:
        await fails(service, name)
    before = len(hostile.asked)
    cutting.on = False
    async with running_service(tmp_path / "store", settings(tmp_path)) as service:
        await service.pull(name)
    fetched = [one for one in hostile.asked[before:] if "/blobs/" in one.path]
    assert [one.headers.get("Range") for one in fetched] == [f"bytes={ENOUGH}-"]


@pytest.mark.parametrize("damage", ["other", "longer", "shorter"])
async def test_what_is_wrong_on_the_disk_is_sent_anew(
    service: Service, hostile: HostileRegistry, damage: str
) -> None:
    cutting, name = CuttingRegistry(hostile), image_of_noise(hostile)
    await fails(service, name)
    (path,) = [path for path in partial(service) if path.stat().st_size == ENOUGH]
    contents = {"other": bytes(ENOUGH), "longer": bytes(10**6), "shorter": NOISE[:10]}
    path.write_bytes(contents[damage])
    cutting.on = False
    await service.pull(name)
    assert len(await service.list()) == 1


async def test_a_server_that_continues_with_something_else_is_asked_for_all(
    service: Service, hostile: HostileRegistry
) -> None:
    cutting, name = CuttingRegistry(hostile), image_of_noise(hostile)
    await fails(service, name)
    cutting.on = False

    async def lie(request: web.Request) -> web.Response | None:
        data = hostile.builder.blobs.get(request.path.rpartition("/")[2], b"")
        if not request.headers.get("Range"):
            return None
        headers = {"Content-Range": f"bytes {ENOUGH}-{len(data) - 1}/{len(data)}"}
        return web.Response(status=206, body=bytes(len(data) - ENOUGH), headers=headers)

    hostile.faults.append(lie)
    await service.pull(name)


async def test_what_one_repository_sent_is_not_continued_for_another(
    service: Service, hostile: HostileRegistry
) -> None:
    cutting, name = CuttingRegistry(hostile), image_of_noise(hostile)
    await fails(service, name)
    cutting.on = False
    other = image_of_noise(hostile, "other:1")
    tried = len(ranges(hostile))
    await service.pull(other)
    assert len(ranges(hostile)) == tried
    assert len(partial(service)) == 3


async def test_content_that_is_not_what_it_should_be_is_not_kept(
    service: Service, hostile: HostileRegistry
) -> None:
    async def corrupt(request: web.Request) -> web.Response | None:
        data = hostile.builder.blobs.get(request.path.rpartition("/")[2], b"")
        return web.Response(body=bytes(len(data))) if "/blobs/" in request.path else None

    hostile.faults.append(corrupt)
    await fails(service, image_of_noise(hostile))
    assert partial(service) == []


async def test_what_is_too_old_goes_at_the_start(tmp_path: Path, hostile: HostileRegistry) -> None:
    CuttingRegistry(hostile)
    async with running_service(tmp_path / "store", settings(tmp_path)) as service:
        await fails(service, image_of_noise(hostile))
        assert partial(service)
    options = msgspec.structs.replace(QUICK, partial_limits=PartialDownloadLimits(seconds=-1))
    async with running_service(tmp_path / "store", settings(tmp_path), options) as service:
        assert partial(service) == []


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), max_size=12),
    st.integers(0, 60),
    st.integers(0, 400),
    st.integers(0, 12),
)
def test_what_is_left_is_never_more_than_may_stay(
    files: list[tuple[int, int]], age: int, blocks: int, count: int
) -> None:
    now = 1_000_000.0
    with tempfile.TemporaryDirectory() as name:
        layout = StoreLayout(Path(name)).open()
        try:
            partial_limits = PartialDownloadLimits(
                seconds=age, bytes=blocks * 4096, files=count, share_of_free=1.0
            )
            partials = PartialDownloads(layout, partial_limits, lambda: now)
            for number, (pages, old) in enumerate(files):
                path = partials.path(f"sha256:{number:064x}", Repository("r", "p"))
                path.write_bytes(b"x" * pages * 4096)
                os.utime(path, (now - old, now - old))
            rubbish = partials.trim()
            left = [path.stat() for path in layout.partial.iterdir()]
            assert len(rubbish) + len(left) == len(files)
            assert len(left) <= count
            assert sum(one.st_blocks * 512 for one in left) <= blocks * 4096
            assert all(now - one.st_mtime <= age for one in left)
        finally:
            layout.close()


def test_what_is_being_received_is_not_cleared_away(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path).open()
    try:
        partials = PartialDownloads(layout, PartialDownloadLimits(), lambda: 0.0)
        home = Repository("r", "p")
        with partials.receiving("sha256:1", home) as path:
            path.write_bytes(b"half")
            assert partials.trim(everything=True) == []
        assert len(partials.trim(everything=True)) == 1
    finally:
        layout.close()
