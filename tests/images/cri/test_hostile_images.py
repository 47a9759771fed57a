"""Images that try to make the service useless: by what they say, not by what they are."""

import contextlib
import json
from typing import Any

import grpc
import pytest
from aiohttp import web

from tests.images.parts.hostile import HostileRegistry, cut_after
from tests.images.parts.layouts import digest_of, linux, tar_of
from tests.images.parts.service import Service


def image_of_user(hostile: HostileRegistry, user: str, name: str) -> str:
    return hostile.tag(hostile.builder.image(tar_of(("f", name.encode())), user=user), name)


async def refusal(service: Service, name: str) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await service.pull(name)
    return failure.value


@pytest.mark.parametrize("user", ["9" * 30, str(2**63), "9" * 5000, "\u0663"])
async def test_a_user_that_is_no_number_of_one_does_not_break_the_list(
    service: Service, hostile: HostileRegistry, user: str
) -> None:
    good = image_of_user(hostile, "1000", "image:good")
    await service.pull(good)
    bad = image_of_user(hostile, user, "image:bad")
    with contextlib.suppress(grpc.aio.AioRpcError):
        await service.pull(bad)
    listed = {image.repo_tags[0]: image for image in await service.list()}
    assert listed[good].uid.value == 1000
    assert bad not in listed or listed[bad].username == user


async def test_a_user_as_long_as_a_book_is_refused(
    service: Service, hostile: HostileRegistry
) -> None:
    error = await refusal(service, image_of_user(hostile, "x" * 100_000, "image:1"))
    assert error.code() is grpc.StatusCode.DATA_LOSS
    assert len(error.details() or "") < 1000


async def test_an_index_that_changes_with_every_pull_does_not_lengthen_the_list_for_ever(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    entry = builder.entry(tar_of(("f", b"")), platform=linux("amd64"))
    for number in range(70):
        document: dict[str, Any] = json.loads(builder.blobs[str(builder.index(entry)["digest"])])
        document["annotations"] = {"number": str(number)}
        top = builder.blob(json.dumps(document).encode(), document["mediaType"])
        name = hostile.tag(top)
        await service.pull(name)
        last = f"{name.rpartition(':')[0]}@{top['digest']}"
    (image,) = await service.list()
    assert image.repo_tags == [name]
    assert last in image.repo_digests
    assert len(image.repo_digests) < 70


async def test_what_is_on_offer_is_told_in_short(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    entries = [
        builder.entry(b"", platform={"os": f"{'o' * 1000}{number}", "architecture": "x"})
        for number in range(200)
    ]
    error = await refusal(service, hostile.tag(builder.index(*entries)))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert "available: " in (error.details() or "")
    assert len(error.details() or "") < 4096


@pytest.mark.parametrize("depth", [1000, 500_000])
async def test_a_document_that_nests_without_end_is_refused(
    service: Service, hostile: HostileRegistry, depth: int
) -> None:
    top = hostile.builder.image(tar_of(("f", b"")))
    data = hostile.builder.blobs[str(top["digest"])]
    deep = data[:-1] + b', "annotations": ' + b"[" * depth + b"]" * depth + b"}"
    kind = str(top["mediaType"])
    name = hostile.tag(hostile.builder.blob(deep, kind))

    async def serve(request: web.Request) -> web.Response | None:
        headers = {"Docker-Content-Digest": digest_of(deep), "Content-Type": kind}
        return web.Response(body=deep, headers=headers) if "/manifests/" in request.path else None

    hostile.faults.append(serve)
    error = await refusal(service, name)
    assert error.code() is grpc.StatusCode.DATA_LOSS


async def test_a_registry_that_sends_a_byte_at_a_time_is_given_up(
    service: Service, hostile: HostileRegistry
) -> None:
    name = hostile.tag(hostile.builder.image(tar_of(("f", bytes(range(256)) * 100))))

    async def crumbs(request: web.Request) -> web.StreamResponse | None:
        if "/blobs/" not in request.path:
            return None
        data = hostile.builder.blobs[request.path.rpartition("/")[2]]
        start = int(request.headers.get("Range", "bytes=0-")[6:-1])
        if not start:
            return await cut_after(request, data, 1)
        rest = data[start:]
        headers = {
            "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}",
            "Content-Length": str(len(rest)),
        }
        response = web.StreamResponse(status=206, headers=headers)
        await response.prepare(request)
        await response.write(rest[:1])
        assert request.transport is not None
        request.transport.abort()
        return response

    hostile.faults.append(crumbs)
    error = await refusal(service, name)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert len(hostile.paths("/blobs/")) < 20


async def test_a_layer_of_a_thousand_addresses_is_looked_for_at_a_few(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    top = builder.image(tar_of(("f", b"")), docker=True)
    manifest = json.loads(builder.blobs[str(top["digest"])])
    layer = manifest["layers"][0]
    layer["mediaType"] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
    layer["urls"] = [f"http://{hostile.host}/away/{number}" for number in range(1000)]
    del builder.blobs[layer["digest"]]
    name = hostile.tag(builder.blob(json.dumps(manifest).encode(), manifest["mediaType"]))
    await refusal(service, name)
    assert 0 < len(hostile.paths("/away/")) < 20
