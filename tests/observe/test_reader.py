"""A cluster read once: pages, and servers that forget the moment that a list is of."""

from __future__ import annotations

import pytest
from aiohttp import web

from bayplan.client import Client
from bayplan.client.errors import GoneError
from bayplan.kube.manifests import UnseenKind
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.observe.permissions import KINDS_BY_COMMAND, RequiredKinds, about_kinds
from bayplan.observe.reader import MAX_RESTARTS, read_once
from tests.client.scripted import Scripted, json

NODES = RequiredKinds((Node,), frozenset({Node}))


def page(*names: str, token: str = "", left: int | None = None) -> dict[str, object]:
    items = [{"metadata": {"name": name}} for name in names]
    return {"metadata": {"continue": token, "remainingItemCount": left}, "items": items}


def gone(token: str = "") -> dict[str, object]:
    told = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    return {**told, "metadata": {"continue": token}}


async def names_of(server: Scripted) -> list[str]:
    async with Client(server.access) as client:
        loaded = await read_once(client, NODES)
    return [one.name for one in loaded.objects]


def asked(request: web.BaseRequest, word: str) -> str:
    return request.query.get(word, "")


async def test_a_list_comes_in_pages_and_says_how_far_it_is() -> None:
    told: list[tuple[int, float]] = []
    async with Scripted(json(page("a", token="t", left=1)), json(page("b"))) as server:
        async with Client(server.access) as client:
            await read_once(client, NODES, progress=lambda _, seen, part: told.append((seen, part)))
        assert [asked(one, "continue") for one in server.requests] == ["", "t"]
    assert told == [(1, 0.5), (2, 1.0)]


async def test_a_server_that_forgets_its_moment_may_let_the_list_go_on_with_a_later_one() -> None:
    script = (json(page("a", token="old")), json(gone("new"), 410), json(page("b")))
    async with Scripted(*script) as server:
        assert await names_of(server) == ["a", "b"]
        assert [asked(one, "continue") for one in server.requests] == ["", "old", "new"]


async def test_else_all_is_asked_for_at_once_and_nothing_is_there_twice() -> None:
    script = (json(page("a", token="old")), json(gone(), 410), json(page("a", "b")))
    async with Scripted(*script) as server:
        assert await names_of(server) == ["a", "b"]
        assert asked(server.requests[-1], "limit") == "0"


async def test_a_server_that_forgets_again_and_again_is_an_error() -> None:
    async with Scripted(json(gone("next"), 410)) as server:
        with pytest.raises(GoneError):
            await names_of(server)
        assert len(server.requests) == MAX_RESTARTS


def test_what_could_not_be_read_is_told_in_one_order_however_it_was_found() -> None:
    kinds = KINDS_BY_COMMAND["check"].kinds
    found = [UnseenKind(kind.__name__) for kind in kinds]
    assert about_kinds(reversed(found), kinds) == about_kinds(found, kinds) == found
    assert about_kinds(found, [Pod, Node]) == [UnseenKind("Pod"), UnseenKind("Node")]
