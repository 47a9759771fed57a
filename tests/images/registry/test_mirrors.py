"""Mirrors as hosts.toml writes them, and layers that live elsewhere."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from aiohttp import web

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.registry.hosts import hosts_for
from tests.images.parts.hostile import HostileRegistry, running_hostile
from tests.images.parts.layouts import ImageBuilder, tar_of
from tests.images.parts.service import CONFIG, Service, running_service, settings, spec

REGISTRY_TABLE = '\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "{path}"\n'
LAYER = tar_of(("file", b"content"))


@pytest.fixture
async def mirror(hostile: HostileRegistry) -> AsyncIterator[HostileRegistry]:
    async with running_hostile(hostile.builder) as running:
        running.tags = hostile.tags
        yield running


@pytest.fixture
async def mirrored(
    tmp_path: Path, hostile: HostileRegistry, mirror: HostileRegistry
) -> AsyncIterator[Service]:
    hosts(tmp_path, hostile.host, f'[host."http://{mirror.host}"]\n')
    configured = settings(tmp_path, CONFIG + REGISTRY_TABLE.format(path=tmp_path / "certs.d"))
    async with running_service(tmp_path / "store", configured) as running:
        yield running


def hosts(directory: Path, registry: str, text: str) -> Path:
    path = directory / "certs.d" / registry / "hosts.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return directory / "certs.d"


async def test_a_mirror_is_asked_first_and_told_whose_content_it_is(
    mirrored: Service, hostile: HostileRegistry, mirror: HostileRegistry
) -> None:
    await mirrored.pull(hostile.tag(hostile.builder.image(LAYER)))
    assert hostile.asked == []
    assert {request.query["ns"] for request in mirror.asked} == {hostile.host}


async def test_the_registry_itself_serves_what_the_mirror_cannot(
    mirrored: Service, hostile: HostileRegistry, mirror: HostileRegistry
) -> None:
    async def broken(request: web.Request) -> web.Response | None:
        if request.method == "HEAD":
            return web.Response(status=500)
        return web.Response(body=b"corrupt") if "/blobs/" in request.path else None

    mirror.faults.append(broken)
    await mirrored.pull(hostile.tag(hostile.builder.image(LAYER)))
    assert hostile.paths("/blobs/")
    assert mirror.paths("/blobs/")


async def test_the_registrys_credentials_are_not_shown_to_a_mirror(
    mirrored: Service, hostile: HostileRegistry, mirror: HostileRegistry
) -> None:
    async def ask(request: web.Request) -> web.Response | None:
        if "Authorization" in request.headers:
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    mirror.faults.append(ask)
    hostile.faults.append(ask)
    request = cri.PullImageRequest(
        image=spec(hostile.tag(hostile.builder.image(LAYER))),
        auth=cri.AuthConfig(username="ann", password="pw"),
    )
    await mirrored.client.pull_image(request)
    assert all("Authorization" not in asked.headers for asked in mirror.asked)
    assert any("Authorization" in asked.headers for asked in hostile.asked)


def test_a_registry_without_a_file_is_asked_itself() -> None:
    bases = {name: hosts_for(name)[0].base for name in ("docker.io", "quay.io", "localhost:5000")}
    assert bases == {
        "docker.io": "https://registry-1.docker.io/v2",
        "quay.io": "https://quay.io/v2",
        "localhost:5000": "http://localhost:5000/v2",
    }


def test_a_hosts_file_is_read_in_order(tmp_path: Path) -> None:
    text = """
server = "https://upstream.example"
[host."https://one.example"]
  capabilities = ["pull"]
  ca = "one.crt"
  [host."https://one.example".header]
    x-custom = "yes"
[host."two.example/prefix/v2/here"]
  override_path = true
  skip_verify = true
"""
    directory = hosts(tmp_path, "_default", text)
    one, two, own = hosts_for("any.example", directory)
    assert (one.base, one.capabilities) == ("https://one.example/v2", frozenset({"pull"}))
    assert one.headers == (("x-custom", "yes"),)
    assert one.ca == (str(directory / "_default" / "one.crt"),)
    assert (two.base, two.skip_verify) == ("https://two.example/prefix/v2/here", True)
    assert (own.base, own.mirror) == ("https://upstream.example/v2", False)


@pytest.mark.parametrize(
    "text", ["server = 1", "[host", '[host."ftp://x"]', 'server = "https://user@x"']
)
def test_a_bad_hosts_file_is_named(tmp_path: Path, text: str) -> None:
    directory = hosts(tmp_path, "_default", text)
    with pytest.raises(ValueError, match=r"hosts\.toml"):
        hosts_for("any.example", directory)


async def test_a_pull_past_a_bad_hosts_file_names_it(
    mirrored: Service, hostile: HostileRegistry, tmp_path: Path
) -> None:
    (tmp_path / "certs.d" / hostile.host / "hosts.toml").write_text("server = 1")
    with pytest.raises(grpc.aio.AioRpcError, match=r"hosts\.toml"):
        await mirrored.pull(f"{hostile.host}/image:1")


async def test_a_foreign_layer_is_fetched_from_its_own_address_without_credentials(
    service: Service, hostile: HostileRegistry
) -> None:
    top = hostile.builder.image(LAYER)
    manifest = json.loads(hostile.builder.blobs[str(top["digest"])])
    digest = manifest["layers"][0]["digest"]
    async with running_hostile(ImageBuilder()) as elsewhere:
        elsewhere.builder.blobs[digest] = hostile.builder.blobs.pop(digest)
        manifest["layers"][0]["urls"] = ["ftp://x/y", f"http://{elsewhere.host}/v2/x/{digest}"]
        manifest["layers"][0]["mediaType"] = (
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
        )
        forged = hostile.builder.blob(json.dumps(manifest).encode(), str(top["mediaType"]))
        request = cri.PullImageRequest(
            image=spec(hostile.tag(forged)), auth=cri.AuthConfig(username="ann", password="pw")
        )
        await service.client.pull_image(request)
        assert len(elsewhere.asked) == 1
        assert "Authorization" not in elsewhere.asked[0].headers
