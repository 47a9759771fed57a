"""Label selectors in a request."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.rest.selectors import parse_labels
from tests.embedded.apiserver.http_client import Http

NODES = "/api/v1/nodes"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b)", "found ')', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
    ],
)
def test_label_selectors_that_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(StatusError) as found:
        parse_labels(text)
    assert found.value.message == problem


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("a in (x,)", {"a": ""}, True),
        ("a notin (x)", {}, True),
        ("!a", {"a": "x"}, False),
        ("a>1,a<3", {"a": "2"}, True),
        ("in=in", {"in": "in"}, True),
        ("", {"a": "x"}, True),
    ],
)
def test_label_selectors_select(text: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_labels(text).matches(labels) is selected


async def test_what_nobody_has_set_can_be_selected_by(http: Http) -> None:
    await http.post(NODES, {"metadata": {"name": "a"}})
    await http.post(NODES, {"metadata": {"name": "b"}, "spec": {"unschedulable": True}})
    reply = await http.get(NODES + "?fieldSelector=spec.unschedulable%3Dfalse")
    assert [node["metadata"]["name"] for node in reply.body["items"]] == ["a"]
