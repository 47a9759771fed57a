"""What an informer does about the things that servers say: 410, bookmarks, nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from bayplan.client import Change, Client, Informer, Untyped, untyped
from bayplan.client.errors import MalformedError
from bayplan.client.objects import name_of, version_of
from bayplan.client.resources import Resource, T
from bayplan.kube.pods import Pod
from tests.client.scripted import (
    Handler,
    Scripted,
    bookmark,
    config_map,
    event,
    json,
    page,
    raw,
    refusal,
    stream,
)
from tests.clocks import VirtualClock

CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")
A1, A2, A3 = (config_map("a", version) for version in (1, 2, 3))
B2 = config_map("b", 2)
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
NO_STREAMING = refusal(422, "Invalid", "sendInitialEvents is forbidden")


class InformerFixture:
    """An informer of a scripted server, under virtual time, and what it published."""

    def __init__(self, server: Scripted, informer: Informer[T], clock: VirtualClock) -> None:
        self.server = server
        self.clock = clock
        self.informer = informer
        self.published: list[tuple[str, str, str]] = []
        self.news = server.news
        informer.on_change(self._note)  # type: ignore[arg-type]

    def _note(self, change: Change[Untyped]) -> None:
        newest = change.object
        self.published.append((change.type, name_of(newest), version_of(newest)))
        self.news.set()

    async def until_published(self, count: int) -> None:
        """Let time pass until so many changes are published."""
        await self.until(lambda: len(self.published) >= count)

    async def until(self, done: Callable[[], bool]) -> None:
        """Let time pass until a change or a request makes that so."""
        while not done():
            self.news.clear()
            waits = [asyncio.ensure_future(it) for it in (self.news.wait(), self._asleep())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    async def _asleep(self) -> None:
        await self.clock.until_sleeping()
        await self.clock.advance(60)

    def queries(self, name: str) -> list[str | None]:
        """That query parameter of each request."""
        return [request.query.get(name) for request in self.server.requests]


@asynccontextmanager
async def following(
    server: Scripted,
    resource: Resource[T] | type[T] = CONFIG_MAPS,  # type: ignore[assignment]
) -> AsyncIterator[InformerFixture]:
    clock = VirtualClock()
    async with server, Client(server.access, clock=clock, rng=Random(1)) as client:
        followed = InformerFixture(server, Informer(client, resource), clock)
        task = asyncio.ensure_future(followed.informer.run())
        try:
            yield followed
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_a_streaming_list_is_preferred_and_followed_on_the_same_stream() -> None:
    server = Scripted(
        stream(
            event("ADDED", A1),
            event("ADDED", B2),
            bookmark(2, initial_end=True),
            event("MODIFIED", A3),
            hold=asyncio.Event(),
        )
    )
    async with following(server) as it:
        with it.informer.subscribe() as changes:
            for _ in range(3):
                await anext(changes)
        assert it.published == [("added", "a", "1"), ("added", "b", "2"), ("updated", "a", "3")]
        assert it.queries("sendInitialEvents") == ["true"]
        assert it.queries("resourceVersionMatch") == ["NotOlderThan"]
        assert it.queries("allowWatchBookmarks") == ["true"]


async def test_a_server_without_streaming_lists_is_asked_in_pages() -> None:
    server = Scripted(
        NO_STREAMING,
        page(A1, version=2, more="token"),
        page(B2, version=2),
        stream(event("DELETED", A1), hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.until_published(3)
        assert it.published == [("added", "a", "1"), ("added", "b", "2"), ("deleted", "a", "1")]
        assert it.queries("continue") == [None, None, "token", None]
        assert it.queries("resourceVersion")[-1] == "2"


async def test_a_server_that_ignores_the_wish_for_a_streaming_list_is_found_out() -> None:
    server = Scripted(
        stream(event("ADDED", A1), bookmark(5)),
        page(A1, version=5),
        stream(hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.informer.synced.wait()
        assert it.published == [("added", "a", "1")]
        assert it.queries("limit")[1] == "500"


async def test_a_server_that_cannot_stream_a_list_just_now_is_asked_in_pages_at_once() -> None:
    unable = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "not now"}
    server = Scripted(
        stream(event("ERROR", unable)), page(A1, version=1), stream(hold=asyncio.Event())
    )
    async with following(server) as it:
        await it.informer.synced.wait()
        assert it.published == [("added", "a", "1")]
        assert it.clock.monotonic() == 0


async def test_a_streaming_list_that_is_cut_twice_is_given_up_for_pages() -> None:
    cut = stream(event("ADDED", A1), then_cut=True)
    server = Scripted(cut, cut, page(A1, version=1), stream(hold=asyncio.Event()))
    async with following(server) as it:
        await it.until_published(1)
        assert it.published == [("added", "a", "1")]
        assert it.queries("sendInitialEvents")[:3] == ["true", "true", None]


async def test_only_a_complete_list_is_told() -> None:
    server = Scripted(stream(event("ADDED", A1), then_cut=True))
    async with following(server) as it:
        await it.clock.until_sleeping()
        assert it.published == []
        assert not it.informer.synced.is_set()


async def test_a_410_in_the_stream_leads_to_a_new_list_with_its_deletions() -> None:
    server = Scripted(
        NO_STREAMING,
        page(A1, B2, version=2),
        stream(event("ERROR", GONE)),
        page(A3, version=9),
        stream(hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.until_published(4)
        assert it.published[2:] == [("deleted", "b", "2"), ("updated", "a", "3")]
        await it.clock.advance(1)
        assert it.informer.lists == 2


async def test_a_410_instead_of_a_stream_leads_to_a_new_list() -> None:
    server = Scripted(
        NO_STREAMING,
        page(A1, version=1),
        refusal(410, "Expired", "too old resource version"),
        page(A2, version=2),
        stream(hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.until_published(2)
        assert it.published == [("added", "a", "1"), ("updated", "a", "2")]


async def test_a_410_between_two_pages_leads_to_one_list_of_all() -> None:
    server = Scripted(
        NO_STREAMING,
        page(A1, version=1, more="old"),
        refusal(410, "Expired", "the continue token is too old"),
        page(A2, B2, version=2),
        stream(hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.informer.synced.wait()
        assert it.published == [("added", "a", "2"), ("added", "b", "2")]
        assert it.queries("limit")[:4] == [None, "500", "500", None]


async def test_a_bookmark_moves_the_place_to_resume_from() -> None:
    server = Scripted(
        NO_STREAMING,
        page(version=1),
        stream(bookmark(77), then_cut=True),
        stream(event("ADDED", A3), hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.until_published(1)
        assert it.queries("resourceVersion") == [None, None, "1", "77"]
        assert it.informer.lists == 1


async def test_an_unwell_server_is_resumed_from_the_same_place() -> None:
    server = Scripted(
        NO_STREAMING,
        page(A1, version=1),
        refusal(503, "ServiceUnavailable"),
        refusal(429, "TooManyRequests", Retry_After="1"),
        refusal(500, "InternalError"),
        stream(event("MODIFIED", A2), hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.until_published(2)
        assert it.queries("resourceVersion")[2:] == ["1"] * 4
        assert it.informer.lists == 1


@pytest.mark.parametrize(
    "script",
    [
        [page(A1, version=1), stream()],
        [page(A1, version=1), stream(event("ADDED", A1))],
        [json({"metadata": {}, "items": []})],
    ],
    ids=["ends at once", "repeats itself", "names no version"],
)
async def test_a_server_that_gets_nowhere_is_not_hammered(script: list[Handler]) -> None:
    server = Scripted(NO_STREAMING, *script)
    async with following(server) as it:
        for asked in range(3):
            await it.clock.until_sleeping()
            assert len(server.requests) == 1 + len(script) + asked
            server.news.clear()
            await it.clock.jump()
            await server.news.wait()


async def test_an_object_made_anew_under_its_name_is_told_as_gone_and_new() -> None:
    server = Scripted(
        NO_STREAMING,
        page(A1, version=1),
        refusal(410, "Gone"),
        page(config_map("a", 8, uid="another"), version=8),
        stream(hold=asyncio.Event()),
    )
    async with following(server) as it:
        await it.until_published(3)
        assert it.published == [("added", "a", "1"), ("deleted", "a", "1"), ("added", "a", "8")]


async def test_an_object_that_does_not_fit_is_reported_and_the_rest_goes_on() -> None:
    def pod(name: str, version: int, containers: object) -> dict[str, object]:
        return {**config_map(name, version), "spec": {"containers": containers}}

    server = Scripted(
        NO_STREAMING,
        page(pod("good", 1, []), pod("bad", 1, 3), version=1),
        stream(
            event("MODIFIED", pod("bad", 2, 3)),
            event("DELETED", pod("good", 3, [])),
            hold=asyncio.Event(),
        ),
    )
    async with following(server, Pod) as it:
        await it.until_published(2)
        assert [what[:2] for what in it.published] == [("added", "good"), ("deleted", "good")]
        assert isinstance(it.informer.last_error, MalformedError)
        assert "here/bad" in str(it.informer.last_error)


async def test_an_object_that_stops_fitting_stays_as_it_was_known() -> None:
    def pod(version: int, containers: object) -> dict[str, object]:
        return {**config_map("p", version), "spec": {"containers": containers}}

    server = Scripted(
        NO_STREAMING,
        page(pod(1, []), version=1),
        refusal(410, "Gone"),
        page(pod(2, "nonsense"), version=2),
        stream(hold=asyncio.Event()),
    )
    async with following(server, Pod) as it:
        await it.until(lambda: len(server.requests) == 5)
        assert it.informer.lists == 2
        assert list(it.informer.objects) == ["here/p"]


async def test_who_does_not_fit_is_told_until_it_fits_or_is_gone() -> None:
    def pod(name: str, version: int, containers: object) -> dict[str, object]:
        return {**config_map(name, version), "spec": {"containers": containers}}

    server = Scripted(
        NO_STREAMING,
        page(pod("a", 1, 3), pod("b", 1, 3), version=1),
        stream(event("MODIFIED", pod("a", 2, [])), event("DELETED", pod("b", 3, 3))),
        page(pod("a", 2, []), version=3),
        stream(hold=asyncio.Event()),
    )
    async with following(server, Pod) as it:
        published: list[tuple[str, bool]] = []
        it.informer.on_malformed(lambda key, error: published.append((key, error is not None)))
        await it.until(lambda: len(server.requests) == 5)
        assert published == [
            ("here/a", True),
            ("here/b", True),
            ("here/b", True),
            ("here/b", False),
        ]
        assert it.published == [("added", "a", "2")]
        late: list[str] = []
        it.informer.on_malformed(lambda key, _: late.append(key))
        assert late == []


async def test_nonsense_in_a_stream_leads_to_a_new_list() -> None:
    for nonsense in (b"not json\n", b'{"type":"SHRUGGED","object":{}}\n', b"[]\n"):
        server = Scripted(
            NO_STREAMING,
            page(A1, version=1),
            raw(nonsense),
            page(A2, version=2),
            stream(hold=asyncio.Event()),
        )
        async with following(server) as it:
            await it.until_published(2)
            assert it.published == [("added", "a", "1"), ("updated", "a", "2")]


async def test_a_kind_at_which_the_server_fails_is_not_waited_for() -> None:
    broken = refusal(500, "InternalError", "a conversion webhook does not answer")
    server = Scripted(*[broken] * 60)
    async with following(server) as it:
        await it.until(it.informer.answered.is_set)
        assert not it.informer.synced.is_set()
        assert "conversion webhook" in str(it.informer.last_error)
        server.only(NO_STREAMING, page(A1), stream(hold=asyncio.Event()))
        await it.until_published(1)
        assert it.informer.synced.is_set()
