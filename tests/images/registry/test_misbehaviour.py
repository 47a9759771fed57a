"""Registries that lie, break off, dawdle and ask too much: nothing half-kept, and a clear error."""

import asyncio
import json
from pathlib import Path

import grpc
import msgspec
import pytest
from aiohttp import web

from bayplan.images.registry import manifests as media_types
from bayplan.images.registry.download import MinimumRate
from tests.images.parts.hostile import HostileRegistry, cut_after
from tests.images.parts.layouts import gzipped, linux, tar_of, windows
from tests.images.parts.service import QUICK, Service, running_service, settings

LAYER = tar_of(("file", b"content" * 10_000))


async def refused(service: Service, name: str, handler: str = "") -> grpc.aio.AioRpcError:
    """Pull in vain; gives the error, after checking that nothing stayed behind."""
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await service.pull(name, handler)
    assert await service.list() == []
    for place in ("blobs", "chains", "ingest"):
        assert list((service.root / place).iterdir()) == [], place
    details = failure.value.details()
    assert details is not None
    assert repr(handler or "runc") in details
    return failure.value


def layer_of(hostile: HostileRegistry, top: dict[str, object]) -> str:
    manifest = json.loads(hostile.builder.blobs[str(top["digest"])])
    return str(manifest["layers"][0]["digest"])


async def test_a_layer_with_another_digest_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    digest = layer_of(hostile, top)
    hostile.builder.blobs[digest] = hostile.builder.blobs[digest][::-1]
    error = await refused(service, hostile.tag(top))
    assert error.code() is grpc.StatusCode.DATA_LOSS
    assert digest in (error.details() or "")


async def test_a_manifest_with_another_digest_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    hostile.builder.blobs[str(top["digest"])] += b" "
    error = await refused(service, hostile.tag(top))
    assert error.code() is grpc.StatusCode.DATA_LOSS


async def test_a_layer_that_unpacks_to_something_else_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    manifest = json.loads(hostile.builder.blobs[str(top["digest"])])
    other = gzipped(tar_of(("file", b"something else")))
    manifest["layers"] = [hostile.builder.blob(other, manifest["layers"][0]["mediaType"])]
    forged = hostile.builder.blob(json.dumps(manifest).encode(), media_types.OCI_MANIFEST)
    error = await refused(service, hostile.tag(forged))
    assert error.code() is grpc.StatusCode.DATA_LOSS
    assert "has the diff id" in (error.details() or "")


async def test_a_body_shorter_than_announced_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    digest = layer_of(hostile, top)
    whole = hostile.builder.blobs[digest]

    async def short(request: web.Request) -> web.Response | None:
        return web.Response(body=whole[:-10]) if digest in request.path else None

    hostile.faults.append(short)
    error = await refused(service, hostile.tag(top))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert f"of {len(whole)} bytes" in (error.details() or "")


async def test_a_body_longer_than_announced_is_refused_before_it_ends(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    digest = layer_of(hostile, top)

    async def endless(request: web.Request) -> web.StreamResponse | None:
        if digest not in request.path:
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(64 * 1024))

    hostile.faults.append(endless)
    error = await refused(service, hostile.tag(top))
    assert error.code() is grpc.StatusCode.DATA_LOSS


@pytest.mark.parametrize("understands_ranges", [True, False])
async def test_a_cut_body_is_resumed_from_the_missing_byte(
    service: Service, hostile: HostileRegistry, understands_ranges: bool
) -> None:
    top = hostile.builder.image(tar_of(("big", bytes(range(256)) * 4096)))
    digest = layer_of(hostile, top)
    data = hostile.builder.blobs[digest]
    ranges: list[str] = []

    async def cut_once(request: web.Request) -> web.StreamResponse | None:
        if digest not in request.path:
            return None
        ranges.append(request.headers.get("Range", ""))
        if len(ranges) == 1:
            return await cut_after(request, data, len(data) // 2)
        return None if understands_ranges else web.Response(body=data)

    hostile.faults.append(cut_once)
    await service.pull(hostile.tag(top))
    assert ranges == ["", f"bytes={len(data) // 2}-"]


async def test_a_body_that_always_breaks_off_is_given_up(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    digest = layer_of(hostile, top)

    async def cut(request: web.Request) -> web.StreamResponse | None:
        if digest not in request.path:
            return None
        return await cut_after(request, hostile.builder.blobs[digest], 0)

    hostile.faults.append(cut)
    error = await refused(service, hostile.tag(top))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert (error.details() or "").startswith("RegistryUnavailable")
    assert len(hostile.paths(digest)) == 3


async def test_a_body_that_only_drips_is_given_up(hostile: HostileRegistry, tmp_path: Path) -> None:
    top = hostile.builder.image(LAYER)
    digest = layer_of(hostile, top)

    async def drip(request: web.Request) -> web.StreamResponse | None:
        if digest not in request.path:
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()  # not another byte, ever
        return response

    hostile.faults.append(drip)
    options = msgspec.structs.replace(QUICK, minimum_rate=MinimumRate(seconds=0.1))
    async with running_service(tmp_path / "store", settings(tmp_path), options) as service:
        error = await refused(service, hostile.tag(top))
    assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_server_errors_are_tried_again(service: Service, hostile: HostileRegistry) -> None:
    top = hostile.builder.image(LAYER)
    left = [500, 503, 429, 408]

    async def stumble(request: web.Request) -> web.Response | None:
        # Two in a row at the most, so that every single request gets through in the end.
        if left and len(hostile.asked) % 3:
            return web.Response(status=left.pop(), headers={"Retry-After": "0"})
        return None

    hostile.faults.append(stumble)
    await service.pull(hostile.tag(top))
    assert left == []


async def test_too_many_requests_for_too_long_is_an_error_at_once(
    service: Service, hostile: HostileRegistry
) -> None:
    async def busy(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "86400"})

    hostile.faults.append(busy)
    error = await refused(service, hostile.tag(hostile.builder.image(LAYER)))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert len(hostile.asked) == 1


async def test_a_manifest_without_end_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.blob(b" " * (media_types.MANIFEST_LIMIT + 1), media_types.OCI_MANIFEST)
    name = hostile.tag(top)

    async def silent_about_digests(request: web.Request) -> web.Response:
        body = b"" if request.method == "HEAD" else hostile.builder.blobs[str(top["digest"])]
        return web.Response(body=body, headers={"Content-Type": media_types.OCI_MANIFEST})

    hostile.faults.append(silent_about_digests)
    error = await refused(service, name)
    assert error.code() is grpc.StatusCode.DATA_LOSS
    assert "larger than" in (error.details() or "")


async def test_an_index_of_indexes_is_followed_to_a_bounded_depth(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    inner = builder.index(builder.entry(LAYER, platform=linux("amd64")))
    await service.pull(hostile.tag(builder.index(inner), "image:nested"))
    await service.remove(f"{hostile.host}/image:nested")
    for _ in range(4):
        inner = builder.index(inner)
    error = await refused(service, hostile.tag(inner, "image:deep"))
    assert error.code() is grpc.StatusCode.DATA_LOSS
    assert "nested" in (error.details() or "")


async def test_a_very_wide_index_of_indexes_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    inner = [builder.index(builder.image(tar_of((str(n), b"")))) for n in range(40)]
    error = await refused(service, hostile.tag(builder.index(*inner)))
    assert error.code() is grpc.StatusCode.DATA_LOSS


@pytest.mark.parametrize("part", ["manifest", "config", "layer"])
async def test_unknown_media_types_are_refused_by_name(
    service: Service, hostile: HostileRegistry, part: str
) -> None:
    top = hostile.builder.image(LAYER)
    manifest = json.loads(hostile.builder.blobs[str(top["digest"])])
    strange = "application/vnd.example.strange"
    if part == "manifest":
        manifest["mediaType"] = strange
    elif part == "config":
        manifest["config"]["mediaType"] = strange
    else:
        manifest["layers"][0]["mediaType"] = strange
    forged = hostile.builder.blob(json.dumps(manifest).encode(), media_types.OCI_MANIFEST)
    error = await refused(service, hostile.tag(forged))
    assert error.code() is grpc.StatusCode.DATA_LOSS
    assert strange in (error.details() or "")


async def test_a_document_that_is_index_and_image_at_once_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    both = json.loads(hostile.builder.blobs[str(top["digest"])]) | {"manifests": []}
    forged = hostile.builder.blob(json.dumps(both).encode(), media_types.OCI_MANIFEST)
    error = await refused(service, hostile.tag(forged))
    assert error.code() is grpc.StatusCode.DATA_LOSS


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b'{"schemaVersion": 2}', b"\xff\xfe"])
async def test_a_document_that_is_no_manifest_is_refused(
    service: Service, hostile: HostileRegistry, body: bytes
) -> None:
    top = hostile.builder.blob(body, media_types.OCI_MANIFEST)
    name = hostile.tag(top)

    async def bare(request: web.Request) -> web.Response:
        headers = {
            "Docker-Content-Digest": str(top["digest"]),
            "Content-Type": media_types.OCI_MANIFEST,
        }
        return web.Response(body=body, headers=headers)

    hostile.faults.append(bare)
    error = await refused(service, name)
    assert error.code() is grpc.StatusCode.DATA_LOSS


async def test_nothing_for_the_handler_names_it_and_what_is_on_offer(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    offered = [linux("s390x"), linux("arm", "v6"), windows("10.0.26100.1742")]
    name = hostile.tag(builder.index(*(builder.entry(LAYER, platform=p) for p in offered)))
    error = await refused(service, name, "wcow-2019")
    assert error.code() is grpc.StatusCode.NOT_FOUND
    for words in (
        *("'wcow-2019'", "windows(10.0.17763)/amd64", "process isolation"),
        *("linux/s390x", "linux/arm/v6", "windows(10.0.26100.1742)/amd64"),
    ):
        assert words in (error.details() or "")


async def test_an_image_without_index_is_judged_by_its_config(
    service: Service, hostile: HostileRegistry
) -> None:
    name = hostile.tag(hostile.builder.image(LAYER, platform=linux("s390x")))
    error = await refused(service, name)
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert "available: linux/s390x" in (error.details() or "")


async def test_an_entry_without_platform_is_taken_if_its_config_fits_and_nothing_else_does(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    wrong = builder.image(tar_of(("a", b"")), platform=linux("s390x"))
    right = builder.image(tar_of(("b", b"")), platform=linux("amd64"))
    declared = builder.entry(tar_of(("c", b"")), platform=linux("arm64"))
    name = hostile.tag(builder.index(wrong, right, declared))
    pulled = await service.pull(name)
    assert pulled == json.loads(builder.blobs[str(right["digest"])])["config"]["digest"]
    assert await service.pull(name, "arm") != pulled


async def test_a_layer_that_cannot_fit_on_the_disk_is_refused_before_it_is_fetched(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    manifest = json.loads(hostile.builder.blobs[str(top["digest"])])
    manifest["layers"][0]["size"] = 1 << 60
    forged = hostile.builder.blob(json.dumps(manifest).encode(), media_types.OCI_MANIFEST)
    error = await refused(service, hostile.tag(forged))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert hostile.paths(manifest["layers"][0]["digest"]) == []


async def test_what_is_not_there_is_not_found(service: Service, hostile: HostileRegistry) -> None:
    error = await refused(service, f"{hostile.host}/nothing:1")
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_a_registry_that_is_not_there_is_unavailable(service: Service) -> None:
    error = await refused(service, "127.0.0.1:1/image:1")
    assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_redirect_without_end_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    async def around(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": request.path})

    hostile.faults.append(around)
    error = await refused(service, hostile.tag(hostile.builder.image(LAYER)))
    assert "redirects more than" in (error.details() or "")
