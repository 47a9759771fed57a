"""Clients of the same process meet the same server: users, rules, refusals, watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from bayplan.base.clock import LoopClock
from bayplan.base.flowcontrol import RetryPolicy
from bayplan.client import Access, Client, ClientOptions, Informers
from bayplan.client.config.access import StaticHeader
from bayplan.client.errors import (
    ApiError,
    DisconnectedError,
    ForbiddenError,
    NotFoundError,
    TimedOutError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from bayplan.client.wire.transport import RequestLimits
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.errors import StatusError as Refusal
from bayplan.embedded.apiserver.request import UserInfo
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest
from bayplan.embedded.asgi import PIECES, AsgiRequest, ResponseCutShort, call_app
from bayplan.embedded.inprocess import InProcessTransport, in_process_client
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import Namespace

pytestmark = [pytest.mark.whole, pytest.mark.virtual]
JANE = UserInfo("jane", ("system:authenticated",))


@asynccontextmanager
async def plane(**options: Any) -> AsyncIterator[ControlPlane]:
    config = PlaneConfig(clock=LoopClock(), rng=Random(1), **options)
    async with ControlPlane(config) as made:
        yield made


def client_of(made: ControlPlane, **options: Any) -> Client:
    return in_process_client(made, rng=Random(2), **options)


def config_map(name: str, size: int = 1) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"text": "x" * size},
    }


async def test_users_are_known_by_certificate_or_token_and_rules_hold() -> None:
    async with plane(authorization="rbac") as made:
        admin = client_of(made)
        assert (await admin.get(Namespace, "default")).metadata.name == "default"
        with pytest.raises(ForbiddenError, match='User "jane" cannot list resource "pods"'):
            await client_of(made, user=JANE).list(Pod)
        transport = InProcessTransport(made)
        with pytest.raises(UnauthorizedError):
            await Client(Access("https://x"), transport=transport).list(Pod)
        token = StaticHeader.bearer(made.admin_token)
        known = Client(Access("https://x", credentials=token), transport=transport)
        assert (await known.list(Pod)).items == []
        acting = Access("https://x", credentials=token, impersonation=(("Impersonate-User", "jo"),))
        with pytest.raises(ForbiddenError, match='User "jo"'):
            await Client(acting, transport=transport).list(Pod)


async def test_refusals_come_with_their_reason_and_retry_after() -> None:
    async with plane() as made:
        busy = [0]

        async def refuse(request: AdmissionRequest) -> None:
            busy[0] += 1
            if busy[0] < 3:
                raise Refusal(429, "TooManyRequests", "not now", {"retryAfterSeconds": 20})

        made.backend.admission.validating.append(refuse)
        client = client_of(made)
        with pytest.raises(NotFoundError, match='pods "nobody" not found'):
            await client.get(Pod, "default", "nobody")
        await client.create(config_map("a"))
        assert made.config.clock.monotonic() == pytest.approx(40)
        busy[0] = 0
        once = client_of(made, options=ClientOptions(retries=RetryPolicy(attempts=1)))
        with pytest.raises(TooManyRequestsError) as told:
            await once.create(config_map("b"))
        assert told.value.retry_after == 20


async def test_a_cancelled_watch_ends_the_servers_task() -> None:
    async with plane() as made:
        client = client_of(made)
        before = len(asyncio.all_tasks())
        async with client.watch(Pod) as stream:
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(1)
            assert len(asyncio.all_tasks()) == before + 2
            waiting.cancel()
            await asyncio.wait({waiting})
        assert len(asyncio.all_tasks()) == before
        assert made.metrics.in_flight == 0


async def test_a_request_that_takes_too_long_is_dropped_on_both_sides() -> None:
    async with plane() as made:

        async def stall(request: AdmissionRequest) -> None:
            await asyncio.Event().wait()

        made.backend.admission.validating.append(stall)
        options = ClientOptions(limits=RequestLimits(answer=30), retries=RetryPolicy(attempts=1))
        with pytest.raises(TimedOutError, match="no answer in time"):
            await client_of(made, options=options).create(config_map("a"))
        assert made.config.clock.monotonic() == pytest.approx(30)
        assert made.metrics.in_flight == 0


async def test_a_reader_that_takes_nothing_is_given_up_and_told() -> None:
    """As over HTTP: the server waits for a slow reader, but not for ever."""
    async with plane() as made:
        client = client_of(made)
        resource = await client.discover("v1", "ConfigMap")
        async with client.watch(resource) as stream:
            for number in range(PIECES + 4):  # each more than fits into one piece
                await client.create(config_map(f"m{number}", 300_000))
                await asyncio.sleep(1)
            await asyncio.sleep(120)
            with pytest.raises(DisconnectedError):
                await anext(stream)
        assert made.metrics.in_flight == 0


async def test_a_stopping_server_ends_watches_in_order() -> None:
    async with plane() as made:
        client = client_of(made)
        seen: list[str] = []

        async def follow() -> None:
            async with client.watch(Namespace) as stream:
                seen.extend([event.object.metadata.name async for event in stream if event.object])

        following = asyncio.create_task(follow())
        await asyncio.sleep(1)
    await following
    assert "default" in seen


async def test_closing_a_client_cuts_its_watches_and_no_others() -> None:
    async with plane() as made:
        client, other = client_of(made), client_of(made)
        async with client.watch(Namespace) as cut, other.watch(Namespace) as kept:
            for stream in (cut, kept):
                await anext(stream)  # the first of those that are there
            await client.close()
            with pytest.raises(DisconnectedError):
                async for _ in cut:
                    pass
            assert (await anext(kept)).object is not None
        with pytest.raises(UnreachableError, match="the client is closed"):
            await client.list(Namespace)


async def test_informers_follow_every_change_over_a_virtual_day() -> None:
    async with plane(watch_cache_capacity=64) as made:
        client = client_of(made)
        async with Informers(client) as informers:
            maps = informers.of(await client.discover("v1", "ConfigMap"))
            await informers.synced()
            for number in range(200):
                await client.create(config_map(f"m{number}"))
                await asyncio.sleep(433)  # watches end and are resumed meanwhile
            assert len(maps.objects) == 200


async def test_an_application_that_fails_or_says_nothing_cuts_the_answer() -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    with pytest.raises(ResponseCutShort):
        async with call_app(failing, AsgiRequest("GET", "/")):
            pass
    async with call_app(half, AsgiRequest("GET", "/a%2Fb", "x=1")) as reply:
        await asyncio.sleep(1)
        with pytest.raises(ResponseCutShort):
            await reply.next_chunk()


async def test_the_bounds_of_bodies_hold() -> None:
    async with plane() as made:
        client = client_of(made)
        with pytest.raises(ApiError) as told:
            await client.create(config_map("big", 4 << 20))
        assert told.value.status.code == 413
        assert await client.raw("/healthz") == b"ok"
