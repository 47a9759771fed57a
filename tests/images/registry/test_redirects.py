"""Where a registry sends us, and what we take along."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver
from yarl import URL

from bayplan.images.registry.client import PullSource, RegistryClient, RegistryLogin
from bayplan.images.registry.credentials import RegistryCredentials
from bayplan.images.registry.download import MinimumRate
from bayplan.images.registry.errors import PullError, Retrier, image_to_pull
from bayplan.images.registry.tokens import origin_of, redirect_target
from bayplan.images.registry.transport import RegistryTimeouts, RegistryTransport
from tests.images.parts.hostile import HostileRegistry, running_hostile
from tests.images.parts.layouts import ImageBuilder, tar_of
from tests.images.parts.service import QUICK, Service, running_service, settings
from tests.images.registry.test_tls import certificate
from tests.images.registry.test_tokens import BASIC, pull


class EverythingAt(AbstractResolver):
    """Finds every name, whatever its port, at one port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[Any]:
        found = {"hostname": host, "host": "127.0.0.1", "port": self._port}
        return [{**found, "family": 2, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        return None


async def basic(request: web.Request) -> web.Response | None:
    if request.headers.get("Authorization") == BASIC:
        return None
    return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="here"'})


@pytest.mark.parametrize("name", ["registry.example:443", "registry.example"])
@pytest.mark.parametrize("server", ["", "https://registry.example/v1/", "registry.example:443"])
async def test_a_registry_named_with_its_default_port_can_be_logged_in_to(
    tmp_path: Path, name: str, server: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    hosts = tmp_path / "certs.d" / name / "hosts.toml"
    hosts.parent.mkdir(parents=True)
    hosts.write_text(f'server = "https://{name}"\nskip_verify = true\n')
    async with running_hostile(ImageBuilder(), context) as private:
        private.faults.append(basic)
        top = private.builder.image(tar_of(("f", b"")))
        private.tag(top)
        transport = RegistryTransport(
            resolver=EverythingAt(int(private.host.rpartition(":")[2])), environment={}
        )
        client = RegistryClient(
            transport, Retrier(QUICK.retry), MinimumRate(), tmp_path / "certs.d"
        )
        login = RegistryLogin(RegistryCredentials("ann", "s3cret"), server)
        try:
            source = PullSource(image_to_pull(f"{name}/image:1"), login)
            assert await client.resolve(source) == top["digest"]
        finally:
            await transport.close()


@pytest.fixture
async def elsewhere(hostile: HostileRegistry) -> AsyncIterator[HostileRegistry]:
    async with running_hostile(hostile.builder) as other:
        yield other


async def test_nothing_is_read_from_netrc(
    service: Service,
    hostile: HostileRegistry,
    elsewhere: HostileRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login node password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))

    async def send_away(request: web.Request) -> web.Response | None:
        if "/blobs/" not in request.path:
            return None
        target = f"http://{elsewhere.host}{request.path}"
        return web.Response(status=307, headers={"Location": target})

    hostile.faults.append(send_away)
    await pull(service, hostile.tag(hostile.builder.image(tar_of(("f", b"")))), None)
    assert elsewhere.paths("/blobs/")
    for request in hostile.asked + elsewhere.asked:
        assert "Authorization" not in request.headers


@pytest.mark.parametrize(
    "location",
    [
        "http://elsewhere.example/blob",
        "ftp://elsewhere.example/blob",
        "file:///etc/shadow",
        "https://127.0.0.1:10250/pods",
        "https://localhost:2379/",
        "https://LOCALHOST/",
        "https://sub.localhost/",
        "https://[::1]:10250/",
        "https://0.0.0.0:10250/",
        "https://[::ffff:7f00:1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://ann:s3cret@elsewhere.example/blob",
        "https://elsewhere.example:99999/blob",
        "https://[half/blob",
    ],
)
def test_a_registry_elsewhere_cannot_send_us_there(location: str) -> None:
    with pytest.raises(PullError):
        redirect_target("https://registry.example/v2/x/blobs/y", location)


def test_a_redirect_leads_on_in_the_open_net_and_on_the_same_machine() -> None:
    start = "https://registry.example/v2/x"
    assert redirect_target(start, "/other?a=b") == "https://registry.example/other?a=b"
    assert redirect_target(start, "https://cdn.example/y") == "https://cdn.example/y"
    assert redirect_target("http://localhost:5000/x", "http://127.0.0.1:5001/y")


def test_a_port_that_goes_without_saying_is_the_same_as_one_that_is_said() -> None:
    assert origin_of("https://Registry.example:443/v2/") == origin_of("https://registry.example/x")
    assert origin_of("http://registry:80") == origin_of("http://registry")
    assert origin_of("http://registry:443") != origin_of("https://registry:443")


async def test_a_manifest_that_drips_is_given_up(hostile: HostileRegistry, tmp_path: Path) -> None:
    name = hostile.tag(hostile.builder.image(tar_of(("f", b""))))

    async def drip(request: web.Request) -> web.StreamResponse | None:
        if request.method == "HEAD":
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    hostile.faults.append(drip)
    options = msgspec.structs.replace(QUICK, timeouts=RegistryTimeouts(5.0, 1.0, document=0.1))
    async with running_service(tmp_path / "s", settings(tmp_path), options) as service:
        with pytest.raises(grpc.aio.AioRpcError, match="no complete response"):
            await service.pull(name)


async def test_a_token_server_that_drips_is_given_up(
    hostile: HostileRegistry, tmp_path: Path
) -> None:
    name = hostile.tag(hostile.builder.image(tar_of(("f", b""))))

    async def drip(request: web.Request) -> web.StreamResponse:
        if request.path != "/token":
            challenge = f'Bearer realm="http://{hostile.host}/token"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    hostile.faults.append(drip)
    options = msgspec.structs.replace(QUICK, timeouts=RegistryTimeouts(5.0, 1.0, document=0.1))
    async with running_service(tmp_path / "s", settings(tmp_path), options) as service:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await service.pull(name)
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_proxies_are_still_the_environments(hostile: HostileRegistry) -> None:
    transport = RegistryTransport(environment={"http_proxy": f"http://{hostile.host}"})
    try:
        asked = transport._send_once("GET", URL("http://far.example/v2/x"))
        async with await asked as response:
            assert response.status == 404
    finally:
        await transport.close()
    assert hostile.asked[0].headers["Host"] == "far.example"
