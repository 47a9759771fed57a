"""What is sent again, what is not, and when."""

from __future__ import annotations

import asyncio
import gzip
from random import Random
from socket import socket

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.flowcontrol import RetryPolicy
from bayplan.client import Access, Client, ClientOptions, deletion, merge, untyped
from bayplan.client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    DisconnectedError,
    MalformedError,
    NotFoundError,
    Status,
    TimedOutError,
    TooLargeError,
    TooManyRequestsError,
    UnavailableError,
    UnreachableError,
    error_from,
)
from bayplan.client.verbs.reads import UnknownKindError
from bayplan.client.wire.calls import wait_before_retry
from bayplan.client.wire.transport import RequestLimits
from bayplan.kube.nodes import Node
from tests.client.proxies import RudeProxy
from tests.client.scripted import Handler, Scripted, config_map, hang_up, json, raw, refusal
from tests.clocks import VirtualClock

CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")
NODE = {"metadata": {"name": "n", "resourceVersion": "1"}}
BUSY = refusal(429, "TooManyRequests", Retry_After="7")


class RetryFixture:
    """A client of a scripted server, under virtual time."""

    def __init__(self, *script: Handler, options: ClientOptions | None = None) -> None:
        self.server = Scripted(*script)
        self.clock = VirtualClock()
        self._options = options

    async def __aenter__(self) -> RetryFixture:
        await self.server.__aenter__()
        self.client = Client(self.server.access, self._options, clock=self.clock, rng=Random(1))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.server.__aexit__()

    @property
    def asked(self) -> int:
        return len(self.server.requests)


async def test_a_read_is_repeated_until_it_is_answered() -> None:
    async with RetryFixture(hang_up, refusal(500), refusal(503), json(NODE)) as it:
        node = await it.clock.run(it.client.get(Node, "n"))
    assert node.name == "n"
    assert it.asked == 4


async def test_the_servers_own_wait_is_honoured() -> None:
    async with RetryFixture(BUSY, json(NODE)) as it:
        await it.clock.run(it.client.get(Node, "n"))
        assert it.clock.monotonic() == 7


async def test_a_wait_that_is_too_long_is_left_to_the_caller() -> None:
    async with RetryFixture(refusal(429, "TooManyRequests", Retry_After="3600")) as it:
        with pytest.raises(TooManyRequestsError) as caught:
            await it.client.get(Node, "n")
    assert caught.value.retry_after == 3600
    assert it.asked == 1


async def test_a_create_that_the_server_put_off_is_sent_again() -> None:
    async with RetryFixture(BUSY, refusal(503, Retry_After="1"), json(config_map("a", 1))) as it:
        await it.clock.run(it.client.create(config_map("a", 0), CONFIG_MAPS))
    assert it.asked == 3


@pytest.mark.parametrize("answer", [hang_up, refusal(500), refusal(503), refusal(504)])
async def test_a_create_that_may_have_been_done_is_not_sent_again(answer: Handler) -> None:
    async with RetryFixture(answer) as it:
        with pytest.raises(ClientError):
            await it.client.create(config_map("a", 0), CONFIG_MAPS)
    assert it.asked == 1


async def test_a_conditional_write_may_be_sent_again() -> None:
    async with RetryFixture(hang_up, refusal(409, "Conflict"), hang_up, json(NODE)) as it:
        with pytest.raises(ConflictError):
            await it.clock.run(it.client.update(config_map("a", 5), CONFIG_MAPS))
        assert it.asked == 2
        change = merge({"metadata": {"resourceVersion": "5"}})
        await it.clock.run(it.client.patch(Node, "n", change=change))
        assert it.asked == 4


async def test_an_unconditional_patch_or_delete_is_not_sent_again() -> None:
    async with RetryFixture(json(NODE), hang_up) as it:
        await it.client.get(Node, "n")  # the next request goes over a connection that was kept
        with pytest.raises(DisconnectedError):
            await it.client.delete(Node, "n")
        assert it.asked == 2
        with pytest.raises(DisconnectedError):
            await it.client.patch(Node, "n", change=merge({"a": 1}))
        assert it.asked == 3


async def test_a_delete_that_names_its_uid_may_be_sent_again() -> None:
    async with RetryFixture(hang_up, json({"kind": "Status"})) as it:
        await it.clock.run(it.client.delete(Node, "n", options=deletion(uid="u")))
    assert it.asked == 2


async def test_a_budgets_refusal_to_evict_is_heard_at_once() -> None:
    async with RetryFixture(refusal(429, "TooManyRequests", Retry_After="1")) as it:
        with pytest.raises(TooManyRequestsError):
            await it.client.evict("here", "p")
    assert it.asked == 1


async def test_whatever_was_never_sent_is_sent_again() -> None:
    clock = VirtualClock()
    with socket() as held:  # bound and not listening: whoever connects is refused
        held.bind(("127.0.0.1", 0))
        nobody = Access(f"http://127.0.0.1:{held.getsockname()[1]}")
        async with Client(nobody, clock=clock, rng=Random(1)) as client:
            with pytest.raises(UnreachableError, match="/here/configmaps: no connection"):
                await clock.run(client.create(config_map("a", 0), CONFIG_MAPS))
    assert clock.monotonic() > 0


async def sleepy(_: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def test_a_watch_that_never_begins_is_not_waited_for_forever() -> None:
    async with RetryFixture(sleepy, options=ClientOptions(limits=RequestLimits(answer=0.05))) as it:
        with pytest.raises(TimedOutError):
            async with it.client.watch(Node):
                pass


async def test_a_slow_server_is_not_waited_for_forever() -> None:
    quick = ClientOptions(limits=RequestLimits(answer=0.5), retries=RetryPolicy(attempts=2))
    async with RetryFixture(sleepy, options=quick) as it:
        with pytest.raises(TimedOutError):
            await it.clock.run(it.client.get(Node, "n"))
    assert it.asked == 2


async def test_an_answer_over_its_bound_is_refused() -> None:
    small = ClientOptions(limits=RequestLimits(largest_answer=1000))
    async with RetryFixture(raw(b" " * 1001), options=small) as it:
        with pytest.raises(TooLargeError, match="bigger than 1000 bytes"):
            await it.client.get(Node, "n")


async def test_an_event_over_its_bound_is_refused() -> None:
    small = ClientOptions(limits=RequestLimits(largest_event=1000))
    large = RetryFixture(raw(b'{"a"' + b" " * 3000), options=small)
    async with large as it, it.client.watch(Node) as events:
        with pytest.raises(TooLargeError, match="an event bigger than 1000 bytes"):
            await anext(events)


async def test_an_answer_that_unpacks_over_its_bound_is_refused() -> None:
    bomb = gzip.compress(bytes(20 << 20))

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with RetryFixture(
        answer, options=ClientOptions(limits=RequestLimits(largest_answer=1 << 20))
    ) as it:
        with pytest.raises(TooLargeError):
            await it.client.get(Node, "n")


DEEP = b'{"items":' + b"[" * 100_000


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items": 3}', DEEP, b"\xff\xfe"])
async def test_a_list_that_is_none_is_malformed(body: bytes) -> None:
    async with RetryFixture(raw(body)) as it:
        with pytest.raises(MalformedError):
            await it.client.list(Node)
        with pytest.raises((MalformedError, UnknownKindError)):
            await it.client.discover("example.com/v1", "Widget")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"message": 3}', DEEP, b"\xff"])
async def test_a_refusal_without_words_is_still_a_refusal(body: bytes) -> None:
    async with RetryFixture(raw(body, 404)) as it:
        with pytest.raises(NotFoundError, match="HTTP 404"):
            await it.client.get(Node, "n")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"metadata": 3}', DEEP, b"\xff\xfe"])
async def test_an_answer_that_is_no_object_is_malformed(body: bytes) -> None:
    async with RetryFixture(raw(body)) as it:
        with pytest.raises(MalformedError):
            await it.client.get(Node, "n")


async def test_an_error_page_of_somebody_else_is_known_by_its_code_alone() -> None:
    async with RetryFixture(raw(b"<h1>hunter2</h1>", 403, "text/html")) as it:
        with pytest.raises(ApiError) as caught:
            await it.client.get(Node, "n")
    assert caught.value.code == 403
    assert "hunter2" not in str(caught.value)


async def test_redirects_are_not_followed() -> None:
    async with Scripted(json(NODE)) as elsewhere:
        away = json({}, 307, Location=elsewhere.access.server + "/api/v1/nodes/n")
        async with RetryFixture(away) as it:
            with pytest.raises(ApiError):
                await it.client.get(Node, "n")
        assert not elsewhere.requests


async def test_a_write_whose_answer_was_lost_is_reported_and_not_repeated(
    access: Access, client: Client, namespace: str
) -> None:
    async with RudeProxy(access) as proxy, Client(proxy.access) as behind:
        await behind.create({"metadata": {"namespace": namespace, "name": "first"}}, CONFIG_MAPS)
        proxy.swallow_answers()
        with pytest.raises(DisconnectedError):
            await behind.create(
                {"metadata": {"namespace": namespace, "generateName": "a-"}}, CONFIG_MAPS
            )
    made = await client.list(CONFIG_MAPS, namespace, fields="metadata.namespace=" + namespace)
    assert len([it for it in made.items if "generateName" in str(it["metadata"])]) == 1


codes = st.sampled_from([400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504])
failures = st.one_of(
    st.builds(
        lambda code, after: error_from(Status(code=code), retry_after=after),
        codes,
        st.none() | st.floats(0, 100),
    ),
    st.sampled_from([DisconnectedError("cut"), TimedOutError("late"), UnreachableError("no")]),
    st.sampled_from([MalformedError("what"), TooLargeError("big")]),
)


@given(failures, st.booleans(), st.integers(1, 10), st.randoms(use_true_random=False))
def test_only_what_is_safe_is_repeated_and_never_for_ever(
    error: ClientError, repeatable: bool, attempt: int, rng: Random
) -> None:
    policy = RetryPolicy(attempts=6, longest_wait=30)
    wait = wait_before_retry(
        policy, error, repeatable=repeatable, attempt=attempt, chance=rng.random
    )
    if wait is None:
        return
    assert attempt < 6
    assert 0 <= wait <= 30
    not_done = isinstance(error, UnreachableError | TooManyRequestsError | UnavailableError)
    assert repeatable or not_done
    if isinstance(error, ApiError):
        assert error.code in {429, 500, 502, 503, 504}
        assert error.retry_after in {None, wait}
