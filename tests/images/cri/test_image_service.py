"""The CRI image service as a client sees it."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import grpc
import pytest
from prometheus_client import generate_latest

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri.client import CriClient
from bayplan.images.cri.server import start_server
from bayplan.images.store.layout import StoreInUseError
from bayplan.images.store.store import ImageStore
from tests.images.parts.hostile import HostileRegistry
from tests.images.parts.layouts import ImageBuilder, linux, tar_of
from tests.images.parts.registry import Registry
from tests.images.parts.service import CONFIG, Service, running_service, settings, spec


def push(registry: Registry, name: str, text: str = "", user: str = "") -> str:
    builder = ImageBuilder()
    content = (text or name).encode()
    return registry.push(builder, builder.image(tar_of(("file", content)), user=user), name)


async def test_an_image_is_found_by_every_kind_of_reference(
    registry: Registry, service: Service
) -> None:
    name = push(registry, "kinds:1")
    image_id = await service.pull(name)
    image = await service.status(name)
    assert image is not None
    assert (image.id, list(image.repo_tags)) == (image_id, [name])
    hexadecimal = image_id.removeprefix("sha256:")
    for reference in (image_id, hexadecimal, hexadecimal[:12], *image.repo_digests):
        found = await service.status(reference)
        assert found is not None, reference
        assert found.id == image_id
    assert await service.status("sha256:" + "0" * 64) is None
    assert await service.status(name.replace(":1", ":2")) is None


async def test_an_image_can_be_pulled_by_digest_and_without_tag(
    registry: Registry, service: Service
) -> None:
    name = push(registry, "untagged:latest")
    image_id = await service.pull(name.removesuffix(":latest"))
    image = await service.status(name)
    assert image is not None
    digest = image.repo_digests[0]
    await service.remove(name)
    assert await service.pull(digest) == image_id
    again = await service.status(digest)
    assert again is not None
    assert list(again.repo_tags) == []


async def test_three_tags_of_one_image_are_one_entry_and_go_together(
    registry: Registry, service: Service
) -> None:
    names = [push(registry, f"tagged:{n}", "same content") for n in range(3)]
    assert len({await service.pull(name) for name in names}) == 1
    (image,) = await service.list()
    assert sorted(image.repo_tags) == names
    await service.remove(names[1])
    assert await service.list() == []
    assert list((service.root / "blobs").iterdir()) == []


async def test_a_moved_tag_leaves_its_old_image(registry: Registry, service: Service) -> None:
    name = push(registry, "moved:1", "old")
    old = await service.pull(name)
    push(registry, "moved:1", "new")
    new = await service.pull(name)
    listed = {image.id: list(image.repo_tags) for image in await service.list()}
    assert listed == {old: [], new: [name]}


async def test_removing_is_idempotent_even_at_once(registry: Registry, service: Service) -> None:
    name = push(registry, "twice:1")
    await service.pull(name)
    await asyncio.gather(*(service.remove(name) for _ in range(5)))
    await service.remove(name)
    assert await service.status(name) is None


@pytest.mark.parametrize(
    ("user", "uid", "username"),
    [("", None, ""), ("1002", 1002, ""), ("1002:5", 1002, ""), ("www:data", None, "www")],
)
async def test_the_user_is_a_number_or_a_name(
    registry: Registry, service: Service, user: str, uid: int | None, username: str
) -> None:
    name = push(registry, f"user:u{len(user)}-{username}", user=user)
    await service.pull(name)
    image = await service.status(name)
    assert image is not None
    assert (image.uid.value if image.HasField("uid") else None, image.username) == (uid, username)


async def test_handlers_of_one_platform_have_entries_of_their_own(
    registry: Registry, service: Service
) -> None:
    name = push(registry, "side:1")
    first = await service.pull(name)
    second = await service.pull(name, "kata")
    assert first == second
    entries = {(image.id, image.spec.runtime_handler) for image in await service.list()}
    assert entries == {(first, ""), (first, "kata")}
    await service.remove(name)
    assert await service.status(name) is None
    assert await service.status(name, "kata") is not None


async def test_the_default_handler_has_two_names(registry: Registry, service: Service) -> None:
    name = push(registry, "default:1")
    await service.pull(name, "runc")
    image = await service.status(name)
    assert image is not None
    assert image.spec.runtime_handler == ""
    assert len(await service.list()) == 1


@pytest.mark.parametrize("call", ["pull", "status", "remove", "list"])
async def test_an_unknown_handler_is_refused_with_those_there_are(
    service: Service, call: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await getattr(service, call)("image:1", "gvisor")
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "'gvisor'" in (failure.value.details() or "")
    assert "runc, arm, kata, wcow-2019, wcow-2022" in (failure.value.details() or "")


@pytest.mark.parametrize("image", ["", "upper/CASE", "a b", "x@sha256:short", "name:"])
async def test_a_name_that_cannot_be_one_is_refused(service: Service, image: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await service.pull(image)
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_list_is_narrowed_by_what_the_filter_says(
    registry: Registry, service: Service
) -> None:
    one, other = push(registry, "filter:1"), push(registry, "filter:2")
    for name, handler in ((one, ""), (one, "kata"), (other, "kata")):
        await service.pull(name, handler)
    assert len(await service.list()) == 3
    assert len(await service.list(one)) == 2
    assert len(await service.list(handler="kata")) == 2
    assert len(await service.list(one, "kata")) == 1
    assert len(await service.list(handler="runc")) == 1
    request = cri.StreamImagesRequest(filter=cri.ImageFilter(image=spec("", "kata")))
    streamed = [i.id async for batch in service.client.stream_images(request) for i in batch.images]
    assert len(streamed) == 2


async def test_file_system_info_is_what_the_disk_says(registry: Registry, service: Service) -> None:
    for number, handler in ((1, ""), (2, "kata"), (3, "kata")):
        builder = ImageBuilder()
        layers = [tar_of(("base", b"b" * 50_000)), tar_of((f"f{number}", b"x" * 1000 * number))]
        name = registry.push(builder, builder.image(*layers), f"usage:{number}")
        await service.pull(name, handler)
    await service.remove(name, "kata")
    (answer,) = (await service.client.image_fs_info()).image_filesystems
    for value, *option in (
        (answer.used_bytes.value, "--block-size=1"),
        (answer.inodes_used.value, "--inodes"),
    ):
        done = await asyncio.to_thread(
            subprocess.run,
            ["du", "-s", *option, str(service.root)],
            capture_output=True,
            check=True,
            text=True,
        )
        assert value == int(done.stdout.split()[0])
    assert answer.fs_id.mountpoint == str(service.root)
    assert answer.timestamp > 0


async def test_pinned_images_say_so(registry: Registry, tmp_path: Path) -> None:
    name, other = push(registry, "pinned:1"), push(registry, "pinned:2")
    text = CONFIG + f'\n[plugins."io.bayplan.images"]\npinned_images = ["{name}"]\n'
    async with running_service(tmp_path / "store", settings(tmp_path, text)) as service:
        for each in (name, other):
            await service.pull(each)
        pinned = {image.repo_tags[0]: image.pinned for image in await service.list()}
        assert pinned == {name: True, other: False}


async def test_everything_is_still_there_after_a_restart(
    registry: Registry, tmp_path: Path
) -> None:
    name = push(registry, "restart:1")
    configured = settings(tmp_path)
    async with running_service(tmp_path / "store", configured) as service:
        await service.pull(name, "kata")
        before = await service.list()
        usage = (await service.client.image_fs_info()).image_filesystems[0].used_bytes
    async with running_service(tmp_path / "store", configured) as service:
        assert await service.list() == before
        after = (await service.client.image_fs_info()).image_filesystems[0].used_bytes
        assert abs(after.value - usage.value) < 1_000_000


async def test_a_name_that_looks_like_an_id_is_a_name_first(
    hostile: HostileRegistry, service: Service
) -> None:
    one = await service.pull(hostile.tag(hostile.builder.image(tar_of(("f", b"1"))), "a:1"))
    hexadecimal = one.removeprefix("sha256:")[:8]
    other = await service.pull(
        hostile.tag(hostile.builder.image(tar_of(("f", b"2"))), f"{hexadecimal}:latest")
    )
    found = await service.status(f"{hostile.host}/{hexadecimal}")
    assert found is not None
    assert found.id == other
    short = await service.status(hexadecimal)
    assert short is not None
    assert short.id == one


def test_a_catalogue_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "images.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(ValueError, match=r"images\.db"):
        ImageStore(tmp_path)


async def test_a_store_serves_one_process(service: Service, tmp_path: Path) -> None:
    with pytest.raises(StoreInUseError):
        async with running_service(service.root, settings(tmp_path)):
            pass


async def test_an_image_for_a_platform_the_handler_no_longer_has_counts_as_absent(
    hostile: HostileRegistry, tmp_path: Path
) -> None:
    builder = hostile.builder
    entries = [
        builder.entry(tar_of(("f", processor.encode())), platform=linux(processor))
        for processor in ("amd64", "arm64")
    ]
    name = hostile.tag(builder.index(*entries))
    async with running_service(tmp_path / "store", settings(tmp_path)) as service:
        old = await service.pull(name, "arm")
    changed = settings(tmp_path, CONFIG.replace('"arm64"', '"amd64"'))
    async with running_service(tmp_path / "store", changed) as service:
        assert await service.status(name, "arm") is None
        assert [image.id for image in await service.list()] == [old]
        assert await service.pull(name, "arm") != old


async def test_the_images_of_a_handler_that_is_gone_can_be_listed_and_removed(
    hostile: HostileRegistry, tmp_path: Path
) -> None:
    name = hostile.tag(hostile.builder.image(tar_of(("f", b""))))
    async with running_service(tmp_path / "store", settings(tmp_path)) as service:
        await service.pull(name, "kata")
    fewer = settings(tmp_path, CONFIG.replace("runtimes.kata", "runtimes.other"))
    async with running_service(tmp_path / "store", fewer) as service:
        (image,) = await service.list()
        assert image.spec.runtime_handler == "kata"
        await service.remove(image.id, "kata")
        assert await service.list() == []


async def test_the_runtime_says_who_it_is_and_which_handlers_it_knows(service: Service) -> None:
    version = await service.client.version(cri.VersionRequest())
    assert (version.runtime_name, version.runtime_api_version) == ("bayplan", "v1")
    status = await service.client.status(cri.StatusRequest(verbose=True))
    names = [handler.name for handler in status.runtime_handlers]
    assert names == ["", "runc", "arm", "kata", "wcow-2019", "wcow-2022"]
    assert json.loads(status.info["config"])["defaultRuntimeName"] == "runc"
    containers = await service.client.list_containers(cri.ListContainersRequest())
    assert list(containers.containers) == []


async def test_a_verbose_status_tells_the_handler_and_the_config(
    registry: Registry, service: Service
) -> None:
    name = push(registry, "verbose:1")
    await service.pull(name, "kata")
    request = cri.ImageStatusRequest(image=spec(name, "kata"), verbose=True)
    info = json.loads((await service.client.image_status(request)).info["info"])
    assert info["runtimeHandler"] == "kata"
    assert info["imageSpec"]["os"] == "linux"
    assert info["chainID"].startswith("sha256:")


async def test_images_are_counted_by_handler(registry: Registry, service: Service) -> None:
    name = push(registry, "metric:1")
    await service.pull(name)
    await service.pull(name, "kata")
    with pytest.raises(grpc.aio.AioRpcError):
        await service.pull(name, "arm")
    text = generate_latest(service.metrics).decode()
    assert 'bayplan_cri_images{default="true",runtime_handler="runc"} 1.0' in text
    assert 'bayplan_cri_images{default="false",runtime_handler="kata"} 1.0' in text
    assert 'bayplan_cri_image_pulls_total{result="failed",runtime_handler="arm"} 1.0' in text


async def test_only_owner_and_group_may_use_the_socket(service: Service) -> None:
    assert service.socket.stat().st_mode & 0o777 == 0o660
    assert service.root.stat().st_mode & 0o077 == 0


async def test_the_umask_is_as_it_was_whenever_others_have_their_turn(tmp_path: Path) -> None:
    before = os.umask(0o027)
    os.umask(0o027)
    seen: set[int] = set()

    async def look() -> None:
        while True:
            seen.add(os.umask(0o027))
            await asyncio.sleep(0)

    looking = asyncio.ensure_future(look())
    try:
        await asyncio.sleep(0)
        async with running_service(tmp_path / "other", settings(tmp_path)):
            pass
    finally:
        looking.cancel()
        os.umask(before)
    assert seen == {0o027}


async def test_a_socket_in_use_is_not_taken_over(service: Service, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="another process"):
        await start_server(service.socket, [])
    async with CriClient(f"unix://{service.socket}") as client:
        await client.version(cri.VersionRequest())
