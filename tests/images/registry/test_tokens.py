"""Credentials: who sees them, when they are asked for, and how long they last."""

import base64
from collections.abc import AsyncIterator

import aiohttp
import grpc
import msgspec
import pytest
from aiohttp import web

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.registry.credentials import RegistryCredentials
from bayplan.images.registry.errors import AuthenticationError
from bayplan.images.registry.tokens import (
    Challenge,
    Origin,
    RegistryTokens,
    TokenKey,
    parse_challenges,
)
from tests.images.parts.hostile import HostileRegistry, running_hostile
from tests.images.parts.layouts import tar_of
from tests.images.parts.service import Service, spec

AUTH = cri.AuthConfig(username="ann", password="s3cret")
BASIC = f"Basic {base64.b64encode(b'ann:s3cret').decode()}"


def image_of_layers(hostile: HostileRegistry, count: int = 4) -> str:
    layers = [tar_of((f"file-{n}", b"x")) for n in range(count)]
    return hostile.tag(hostile.builder.image(*layers))


async def pull(service: Service, name: str, auth: cri.AuthConfig | None = AUTH) -> str:
    request = cri.PullImageRequest(image=spec(name), auth=auth)
    return (await service.client.pull_image(request)).image_ref


class TokenServer:
    """Asks for tokens on every request, and hands them out for the right password."""

    def __init__(self, hostile: HostileRegistry) -> None:
        self.hostile = hostile
        self.tokens: list[dict[str, str]] = []

    async def __call__(self, request: web.Request) -> web.Response | None:
        if request.path == "/token":
            return self._token(request)
        if request.headers.get("Authorization") == f"Bearer token-{len(self.tokens)}":
            return None
        challenge = f'Bearer realm="http://{self.hostile.host}/token",service="here"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    def _token(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != BASIC:
            return web.Response(status=403)
        self.tokens.append(dict(request.query))
        return web.json_response({"token": f"token-{len(self.tokens)}", "expires_in": 300})


async def test_a_token_is_fetched_once_for_a_whole_pull(
    service: Service, hostile: HostileRegistry
) -> None:
    server = TokenServer(hostile)
    hostile.faults.append(server)
    await pull(service, image_of_layers(hostile))
    wanted = {"scope": "repository:image:pull", "service": "here", "account": "ann"}
    assert server.tokens == [wanted]


async def test_a_token_server_that_refuses_is_an_authentication_error(
    service: Service, hostile: HostileRegistry
) -> None:
    hostile.faults.append(TokenServer(hostile))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await pull(service, image_of_layers(hostile), cri.AuthConfig(username="a", password="pw!"))
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "pw!" not in (failure.value.details() or "")


async def test_a_registry_that_never_stops_asking_is_left(
    service: Service, hostile: HostileRegistry
) -> None:
    async def always(request: web.Request) -> web.Response:
        challenge = f'Bearer realm="http://{hostile.host}/token"'
        if request.path == "/token":
            return web.json_response({"access_token": "t"})
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    hostile.faults.append(always)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await pull(service, image_of_layers(hostile))
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert len(hostile.asked) == 3


@pytest.mark.parametrize(
    "auth",
    [
        AUTH,
        cri.AuthConfig(auth=base64.b64encode(b"ann:s3cret").decode()),
    ],
)
async def test_basic_credentials_are_sent_when_asked_for(
    service: Service, hostile: HostileRegistry, auth: cri.AuthConfig
) -> None:
    async def basic(request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == BASIC:
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="here"'})

    hostile.faults.append(basic)
    await pull(service, image_of_layers(hostile), auth)
    assert hostile.asked[0].headers.get("Authorization") is None


async def test_a_registry_token_is_sent_as_it_is(
    service: Service, hostile: HostileRegistry
) -> None:
    async def bearer(request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == "Bearer given":
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": 'Bearer realm="http://x/"'})

    hostile.faults.append(bearer)
    await pull(service, image_of_layers(hostile), cri.AuthConfig(registry_token="given"))


async def test_an_identity_token_is_exchanged(service: Service, hostile: HostileRegistry) -> None:
    async def exchange(request: web.Request) -> web.Response | None:
        if request.path == "/token":
            form = await request.post()
            assert form["grant_type"] == "refresh_token"
            return web.json_response({"access_token": "for-" + str(form["refresh_token"])})
        if request.headers.get("Authorization") == "Bearer for-id":
            return None
        challenge = f'Bearer realm="http://{hostile.host}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    hostile.faults.append(exchange)
    await pull(service, image_of_layers(hostile), cri.AuthConfig(identity_token="id"))


async def test_credentials_for_another_server_are_kept_back(
    service: Service, hostile: HostileRegistry
) -> None:
    async def basic(request: web.Request) -> web.Response:
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="here"'})

    hostile.faults.append(basic)
    elsewhere = cri.AuthConfig(username="ann", password="x", server_address="other.example")
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await pull(service, image_of_layers(hostile), elsewhere)
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert all("Authorization" not in request.headers for request in hostile.asked)


@pytest.fixture
async def elsewhere(hostile: HostileRegistry) -> AsyncIterator[HostileRegistry]:
    async with running_hostile(hostile.builder) as other:
        yield other


def redirecting(hostile: HostileRegistry, elsewhere: HostileRegistry) -> None:
    async def send_away(request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") != BASIC:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="here"'})
        if "/blobs/" not in request.path:
            return None
        target = f"http://{elsewhere.host}{request.path}"
        return web.Response(status=307, headers={"Location": target})

    hostile.faults.append(send_away)


async def test_credentials_do_not_follow_a_redirect_to_another_host(
    service: Service, hostile: HostileRegistry, elsewhere: HostileRegistry
) -> None:
    redirecting(hostile, elsewhere)
    await pull(service, image_of_layers(hostile))
    assert elsewhere.paths("/blobs/")
    assert all("Authorization" not in request.headers for request in elsewhere.asked)


async def test_whoever_we_are_redirected_to_cannot_ask_for_credentials(
    service: Service, hostile: HostileRegistry, elsewhere: HostileRegistry
) -> None:
    redirecting(hostile, elsewhere)

    async def greedy(request: web.Request) -> web.Response:
        challenge = f'Basic realm="x", Bearer realm="http://{elsewhere.host}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    elsewhere.faults.append(greedy)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await pull(service, image_of_layers(hostile))
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert elsewhere.paths("/token") == []
    assert all("Authorization" not in request.headers for request in elsewhere.asked)


KEY = TokenKey(
    Origin("https", "registry.example", 443), "image", RegistryCredentials("ann", "s3cret")
)
OPEN_KEY = msgspec.structs.replace(KEY, origin=Origin("http", "127.0.0.1", 5000))


async def test_a_token_is_used_until_it_expires(hostile: HostileRegistry) -> None:
    now = 1000.0
    server = TokenServer(hostile)
    hostile.faults.append(server)
    challenge = Challenge("bearer", {"realm": f"http://{hostile.host}/token"})
    async with aiohttp.ClientSession() as session:
        tokens = RegistryTokens(session.request, lambda: now)
        assert tokens.cached(OPEN_KEY) is None
        assert await tokens.authorize(OPEN_KEY, [challenge]) == "Bearer token-1"
        now += 290
        assert tokens.cached(OPEN_KEY) == "Bearer token-1"
        now += 10
        assert tokens.cached(OPEN_KEY) is None


@pytest.mark.parametrize(
    "realm",
    [
        "http://registry.example/token",
        "file:///etc/passwd",
        "",
        "https://127.0.0.1:10250/exec",
        "https://localhost/token",
        "https://[::1]/token",
        "https://[::ffff:127.0.0.1]/token",
        "https://169.254.169.254/latest/meta-data",
        "https://ann:s3cret@elsewhere.example/token",
    ],
)
async def test_a_registry_cannot_send_us_for_a_token_where_it_may_not(realm: str) -> None:
    async with aiohttp.ClientSession() as session:
        tokens = RegistryTokens(session.request, lambda: 0.0)
        with pytest.raises(AuthenticationError, match="refused"):
            await tokens.authorize(KEY, [Challenge("bearer", {"realm": realm})])


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('Basic realm="a b"', [("basic", {"realm": "a b"})]),
        ("Basic", [("basic", {})]),
        (
            'Bearer realm="https://a/t",service="s",scope="repository:a/b:pull,push"',
            [
                (
                    "bearer",
                    {
                        "realm": "https://a/t",
                        "service": "s",
                        "scope": "repository:a/b:pull,push",
                    },
                )
            ],
        ),
        (
            'Basic realm="x", Bearer realm="y", service=z',
            [("basic", {"realm": "x"}), ("bearer", {"realm": "y", "service": "z"})],
        ),
        (r'Basic realm="a\"b"', [("basic", {"realm": 'a"b'})]),
        ("nonsense;;;", []),
        ("", []),
    ],
)
def test_challenges_are_read(header: str, found: list[tuple[str, dict[str, str]]]) -> None:
    assert parse_challenges([header]) == [Challenge(*one) for one in found]


def test_a_secret_is_never_shown() -> None:
    credentials = RegistryCredentials("ann", "s3cret", "identity", "registry")
    for text in (repr(credentials), str(credentials), f"{KEY}"):
        for secret in ("s3cret", "identity", "registry_token"):
            assert secret not in text
