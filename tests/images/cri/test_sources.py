"""Content is for the repositories that have it, and not for whoever can name its digest."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from aiohttp import web

from bayplan.images.cri import cri_pb2 as cri
from tests.images.parts.hostile import HostileRegistry, running_hostile
from tests.images.parts.layouts import ImageBuilder, digest_of, linux, tar_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.parts.service import Service, running_service, settings, spec

AUTH = cri.AuthConfig(username=USER, password=PASSWORD)
SECRET = tar_of(("secret", b"for members only"))


@pytest.fixture
async def foreign() -> AsyncIterator[HostileRegistry]:
    """A registry that has nothing but its own."""
    async with running_hostile(ImageBuilder()) as running:
        yield running


class PrivateImage:
    """An image of a real registry with a password, pulled by who has it."""

    def __init__(self, registry: Registry, name: str) -> None:
        self.builder = ImageBuilder()
        entry = self.builder.entry(SECRET, platform=linux("amd64"))
        top = self.builder.index(entry)
        self.index, self.manifest = str(top["digest"]), str(entry["digest"])
        self.name = registry.push(self.builder, top, name)

    async def pull(self, service: Service) -> str:
        request = cri.PullImageRequest(image=spec(self.name), auth=AUTH)
        return (await service.client.pull_image(request)).image_ref

    def documents(self) -> dict[str, bytes]:
        return {digest: self.builder.blobs[digest] for digest in (self.index, self.manifest)}


@pytest.fixture
async def private(guarded_registry: Registry, service: Service, tmp_path: Path) -> PrivateImage:
    made = PrivateImage(guarded_registry, f"team/{tmp_path.name.replace('_', '')}:1")
    await made.pull(service)
    return made


async def refused(service: Service, image: str) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await service.pull(image)
    return failure.value.code()


async def test_naming_a_digest_is_not_having_it(
    service: Service, foreign: HostileRegistry, private: PrivateImage
) -> None:
    async def name_it(request: web.Request) -> web.Response | None:
        if request.method != "HEAD":
            return None
        return web.Response(headers={"Docker-Content-Digest": private.index})

    foreign.faults.append(name_it)
    assert await refused(service, f"{foreign.host}/mine:1") is grpc.StatusCode.NOT_FOUND
    by_digest = f"{foreign.host}/mine@{private.index}"
    assert await refused(service, by_digest) is grpc.StatusCode.NOT_FOUND
    assert [image.repo_tags for image in await service.list()] == [[private.name]]


async def test_having_the_documents_is_not_having_the_layers(
    service: Service, foreign: HostileRegistry, private: PrivateImage
) -> None:
    async def claim_all(request: web.Request) -> web.Response | None:
        if request.method == "HEAD" and "/blobs/" in request.path:
            return web.Response(headers={"Content-Length": "100"})
        return None

    foreign.builder.blobs.update(private.documents())
    foreign.faults.append(claim_all)
    image = foreign.tag({"digest": private.index}, "mine:1")
    assert await refused(service, image) is grpc.StatusCode.NOT_FOUND
    assert foreign.paths("/blobs/") == [f"/v2/mine/blobs/{config_of(private)}"]


def config_of(private: PrivateImage) -> str:
    manifest = json.loads(private.builder.blobs[private.manifest])
    return str(manifest["config"]["digest"])


async def test_claiming_anothers_content_for_a_layer_does_not_give_it(
    service: Service, foreign: HostileRegistry, private: PrivateImage
) -> None:
    builder = foreign.builder
    top = builder.image(tar_of(("mine", b"worthless")))
    manifest = json.loads(builder.blobs[str(top["digest"])])
    config = json.loads(builder.blobs[manifest["config"]["digest"]])
    config["rootfs"]["diff_ids"] = [digest_of(SECRET)]
    kind = manifest["config"]["mediaType"]
    manifest["config"] = builder.blob(json.dumps(config).encode(), kind)
    forged = builder.blob(json.dumps(manifest).encode(), manifest["mediaType"])
    assert await refused(service, foreign.tag(forged)) is grpc.StatusCode.DATA_LOSS
    assert len(await service.list()) == 1


async def test_who_asks_while_another_pulls_gets_nothing_of_it(
    service: Service, hostile: HostileRegistry, foreign: HostileRegistry
) -> None:
    top = hostile.builder.image(SECRET)
    name = hostile.tag(top, "team/app:1")
    foreign.builder.blobs[str(top["digest"])] = hostile.builder.blobs[str(top["digest"])]
    reached, asked, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def pause(request: web.Request) -> web.Response | None:
        if "/blobs/" in request.path:
            reached.set()
            await go_on.wait()
        return None

    async def notice(request: web.Request) -> None:
        asked.set()

    hostile.faults.append(pause)
    foreign.faults.append(notice)
    pulling = asyncio.ensure_future(service.pull(name))
    await reached.wait()
    stealing = asyncio.ensure_future(refused(service, foreign.tag(top, "mine:1")))
    await asked.wait()
    go_on.set()
    assert await stealing is grpc.StatusCode.NOT_FOUND
    assert await pulling


async def test_who_has_all_of_it_shares_it(
    service: Service, foreign: HostileRegistry, private: PrivateImage
) -> None:
    foreign.builder.blobs.update(private.builder.blobs)
    before = {path.name for path in service.root.glob("[bc]*/*")}
    name = foreign.tag({"digest": private.index}, "copy:1")
    await service.pull(name)
    assert {path.name for path in service.root.glob("[bc]*/*")} == before
    assert sorted((await service.list())[0].repo_tags) == sorted([private.name, name])
    asked = len(foreign.paths(""))
    await service.pull(name, "kata")
    assert len(foreign.paths("")) == asked


async def test_a_registry_is_asked_whether_another_repository_of_its_own_has_it(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(SECRET, tar_of(("more", b"")))
    await service.pull(hostile.tag(top, "one/app:1"))
    await service.pull(hostile.tag(top, "two/app:1"))
    assert len(hostile.paths("two/app/blobs/", "HEAD")) == 3
    assert hostile.paths("two/app/blobs/") == []

    async def not_here(request: web.Request) -> web.Response | None:
        closed = "three/app/blobs/" in request.path
        return web.Response(status=404) if closed else None

    hostile.faults.append(not_here)
    assert await refused(service, hostile.tag(top, "three/app:1")) is grpc.StatusCode.NOT_FOUND


async def test_two_repositories_of_a_real_registry_share_content(
    service: Service, registry: Registry
) -> None:
    builder = ImageBuilder()
    top = builder.index(builder.entry(SECRET, platform=linux("amd64")))
    names = [registry.push(builder, top, f"sources/{place}:1") for place in ("one", "two")]
    ids = {await service.pull(name) for name in names}
    assert len(ids) == 1
    assert len(list((service.root / "chains").iterdir())) == 1


async def test_what_is_known_of_content_outlives_a_restart_and_goes_with_it(
    tmp_path: Path, hostile: HostileRegistry
) -> None:
    name = hostile.tag(hostile.builder.image(SECRET), "team/app:1")
    root = tmp_path / "store"
    async with running_service(root, settings(tmp_path)) as service:
        await service.pull(name)
    asked = len(hostile.paths(""))
    async with running_service(root, settings(tmp_path)) as service:
        await service.pull(name, "kata")
        assert len(hostile.paths("")) == asked
        assert rows(root, "sources") == 3
        await service.remove(name)
        assert rows(root, "sources") == 3
        await service.remove(name, "kata")
    assert rows(root, "sources") == rows(root, "contents") == 0


async def test_a_store_that_knew_no_sources_has_its_content_sent_once_more(
    tmp_path: Path, hostile: HostileRegistry
) -> None:
    name = hostile.tag(hostile.builder.image(SECRET), "team/app:1")
    root = tmp_path / "store"
    async with running_service(root, settings(tmp_path)) as service:
        await service.pull(name)
    with sqlite3.connect(root / "images.db") as database:
        database.executescript("DROP TABLE sources; DROP TABLE contents; PRAGMA user_version = 1")
    database.close()
    asked = len(hostile.paths(""))
    async with running_service(root, settings(tmp_path)) as service:
        assert await service.status(name) is not None
        await service.pull(name)
        assert len(hostile.paths("")) == 2 * asked
        await service.pull(name)
        assert len(hostile.paths("")) == 2 * asked


def rows(root: Path, table: str) -> int:
    database = sqlite3.connect(root / "images.db")
    try:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        database.close()
