"""One request must not stop the server: each that tries is answered, soon, and by a refusal.

What is measured is the time that the server's own processor works, not what the clock says.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.garbage import paused_collector
from bayplan.embedded.apiserver.authorization.escalation import is_held
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.crds.pruning import add_defaults
from bayplan.embedded.apiserver.crds.validation import problems
from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.jsontypes import decode, encode
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.apiserver.rest.selectors import parse_fields, parse_labels
from bayplan.embedded.asgi import AsgiRequest, call_app
from tests.embedded.apiserver.yardstick import SOON, yardstick

pytestmark = pytest.mark.whole


CMS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MANY = 10_000


@contextmanager
def soon() -> Iterator[None]:
    """Whatever is inside takes little work: no text and no list is gone through for each part.

    Looking for garbage does not count: it goes through all that other tests have left here.
    """
    before = yardstick()
    with paused_collector():
        start = time.thread_time()
        yield
        taken = time.thread_time() - start
    assert taken < SOON * max(before, yardstick())


class RequestSender:
    """Sends requests to a control plane of this thread."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        *,
        query: str = "",
        known: bool = True,
        accept: str = "application/json",
    ) -> tuple[int, Any]:
        """The code and the body of the answer."""
        sent = body if isinstance(body, bytes) else b"" if body is None else encode(body)
        state = {"peer": ADMIN} if known else {}
        headers = (("Content-Type", kind), ("Accept", accept))
        asked = AsgiRequest(method, path, query, headers, sent, state)
        with soon():
            async with call_app(self._plane.app, asked) as reply:
                content = b""
                while chunk := await reply.next_chunk():
                    content += chunk
                return reply.status, decode(content) if content[:1] == b"{" else content


@pytest.fixture
async def ask() -> AsyncIterator[RequestSender]:
    async with ControlPlane(PlaneConfig()) as plane:
        yield RequestSender(plane)


@pytest.mark.parametrize("nesting", [b"[", b"{a: ", b"- ", b"? ", b"[{"])
@pytest.mark.parametrize("times", [300, 30_000])
async def test_deeply_nested_yaml_is_refused(
    ask: RequestSender, nesting: bytes, times: int
) -> None:
    code, status = await ask("POST", CMS, nesting * times, "application/yaml")
    assert (code, status["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    "body",
    [
        b"metadata: {name: a}\ndata: " + b"1:" * 500_000 + b"1",
        b"metadata: {name: a}\ndata: !!int " + b"1:" * 50_000 + b"1",
        b"metadata: {name: a}\ndata: " + b"9" * 500_000,
        b"metadata: {name: a}\ndata: [" + b"a, " * 500_000 + b"]",
        b"metadata: {name: !!bool maybe, b: !!timestamp never, c: !!int ''}",
    ],
)
async def test_yaml_that_takes_long_to_read_is_refused(ask: RequestSender, body: bytes) -> None:
    code, _ = await ask("POST", CMS, body, "application/yaml")
    assert code == 400


async def test_copies_of_copies_are_refused(ask: RequestSender) -> None:
    await ask("POST", CMS, {"metadata": {"name": "a"}, "data": {"x": "y" * 200}})
    copies = [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(24)]
    code, _ = await ask("PATCH", f"{CMS}/a", copies, "application/json-patch+json")
    assert code in (413, 422)


async def test_an_object_does_not_become_larger_or_deeper_than_it_may(ask: RequestSender) -> None:
    await ask("POST", CMS, {"metadata": {"name": "a"}})
    merge, codes = "application/merge-patch+json", []
    for number in range(4):
        change = {"data": {f"x{number}": "y" * 1_000_000}}
        codes.append((await ask("PATCH", f"{CMS}/a", change, merge))[0])
    assert codes == [200, 200, 200, 413] or 422 in codes
    await _define(ask, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    path = "/apis/ex.com/v1/namespaces/default/things"
    body: Any = {}
    for _ in range(300):
        body = {"a": body}
    named = {"apiVersion": "ex.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert (await ask("POST", path, {**named, "spec": body}))[0] == 400


async def _define(ask: RequestSender, spec: Any) -> int:
    """Define things whose spec has a schema."""
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.ex.com"},
        "spec": {
            "group": "ex.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }
    code, _ = await ask("POST", CRDS, definition)
    return code


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|aa)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
async def test_a_pattern_costs_what_its_text_is_long(ask: RequestSender, pattern: str) -> None:
    assert await _define(ask, {"type": "string", "pattern": pattern}) == 201
    thing = {"apiVersion": "ex.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    body = {**thing, "spec": "a" * 20_000 + "!"}
    code, status = await ask("POST", "/apis/ex.com/v1/namespaces/default/things", body)
    assert (code, "should match" in status["message"]) == (422, True)


@pytest.mark.parametrize("where", ["anyOf", "allOf", "oneOf", "not", "plain"])
@pytest.mark.parametrize("pattern", ["[", "(?=a)", "a{1,1000}{1,1000}", "\\"])
async def test_a_broken_pattern_is_refused_wherever_it_stands(
    ask: RequestSender, where: str, pattern: str
) -> None:
    broken: Any = {"pattern": pattern}
    inner = {"not": broken} if where == "not" else broken if where == "plain" else {where: [broken]}
    assert await _define(ask, {"type": "string", **inner}) == 422


def test_alternatives_in_alternatives_are_not_tried_for_ever() -> None:
    schema: Any = {"type": "string", "maxLength": 1}
    for _ in range(12):
        schema = {"anyOf": [schema, schema, schema]}
    with soon(), pytest.raises(StatusError, match="too much work"):
        problems("text", schema)


def test_defaults_in_long_lists_are_not_filled_in_for_ever() -> None:
    default = {f"k{number}": "v" * 50 for number in range(200)}
    schema = {"items": {"properties": {"a": {"default": default}}}}
    with soon(), pytest.raises(StatusError, match="too much work"):
        add_defaults([{} for _ in range(20_000)], schema)


def test_a_set_of_many_is_checked_in_one_pass() -> None:
    schema = {"type": "array", "x-kubernetes-list-type": "set"}
    with soon():
        found = problems([f"item-{number}" for number in range(60_000)] + ["item-7"], schema)
    assert [one.field for one in found] == ["[60000]"]


@pytest.mark.parametrize(
    "text",
    [
        ",".join(f"a{number}" for number in range(MANY)),
        ",".join(f"!a{number}" for number in range(MANY)),
        "a in (" + ",".join(str(number) for number in range(MANY)),
        "a in (" * MANY,
        "a" * 60_000,
        " " * 60_000 + "=",
        " " * 60_000,
        "(" * 60_000,
    ],
)
def test_selectors_of_many_requirements_are_read_in_one_pass(text: str) -> None:
    nodes = next(kind for kind in BUILTIN if kind.resource == "nodes")
    for read in (parse_labels, lambda given: parse_fields(given, nodes)):
        with soon(), suppress(StatusError):
            read(text)


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2", "x"]))
TERMS = st.sampled_from(
    ["a", "!a", "b=1", "b!=1", "c in (1,x)", "c notin (2,)", "a>1", "a<2", "b==x", "c in ()"]
)


def _holds(term: str, labels: dict[str, str]) -> bool:
    """One requirement, said out."""
    value = {key: labels.get(key) for key in "abc"}
    number = int(value["a"]) if value["a"] in ("1", "2") else None
    return {
        "a": value["a"] is not None,
        "!a": value["a"] is None,
        "b=1": value["b"] == "1",
        "b!=1": value["b"] != "1",
        "c in (1,x)": value["c"] in ("1", "x"),
        "c notin (2,)": value["c"] not in ("2", ""),
        "a>1": number is not None and number > 1,
        "a<2": number is not None and number < 2,
        "b==x": value["b"] == "x",
        "c in ()": value["c"] == "",
    }[term]


@given(st.lists(TERMS, max_size=6), LABELS)
def test_requirements_put_together_ask_the_same(terms: list[str], labels: dict[str, str]) -> None:
    selector = parse_labels(",".join(terms))
    assert selector.matches(labels) == all(_holds(term, labels) for term in terms)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a>x",
            (
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
                "operators, the value must be an integer"
            ),
        ),
    ],
)
def test_what_is_no_selector_is_refused_in_kubernetes_words(text: str, words: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(text)
    assert refused.value.message == words


@pytest.mark.parametrize("path", ["*", "", "x", "//", "/%00", "/%ff"])
async def test_a_path_that_is_none_is_found_nowhere(ask: RequestSender, path: str) -> None:
    assert (await ask("GET", path, known=False))[0] in (401, 404)
    assert (await ask("GET", path))[0] in (403, 404, 200 if not path.strip("/") else 404)


@pytest.mark.parametrize(
    "kind", ["application/strategic-merge-patch+json", "application/apply-patch+yaml"]
)
async def test_lists_of_many_are_merged_in_one_pass(ask: RequestSender, kind: str) -> None:
    labels = {"a": "b"}
    pod = {"containers": [{"name": "c", "image": "i"}]}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    named = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    assert (await ask("POST", DEPLOYMENTS, {**named, "spec": spec}))[0] == 201
    for first in (0, 1000):
        finalizers = [f"ex.com/f{number}" for number in range(first, 3000)]
        variables = [{"name": f"v{number}", "value": "x"} for number in range(first, 3000)]
        inner = {"containers": [{"name": "c", "image": "i", "env": variables}]}
        change = {
            **named,
            "metadata": {"name": "d", "finalizers": finalizers},
            "spec": {"template": {"spec": inner}},
        }
        query = "fieldManager=m&force=true" if "apply" in kind else ""
        code, _ = await ask("PATCH", f"{DEPLOYMENTS}/d", change, kind, query=query)
        assert code == 200


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": f"c{n}", "image": "i"} for n in range(20_000)]},
        {
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"cpu": "0" * 500_000}}}
            ]
        },
        {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [
                        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "['" * 200_000}}}
                    ],
                }
            ]
        },
        {"containers": [{"name": "c", "image": "a/" * 200_000}]},
        {"schedulingGates": [{"name": f"g{n}"} for n in range(15_000)], "containers": []},
        {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(12_000)]},
    ],
)
@pytest.mark.parametrize("patching", [False, True])
async def test_pods_that_are_too_much_are_answered_soon(
    ask: RequestSender, spec: Any, patching: bool
) -> None:
    pods = "/api/v1/namespaces/default/pods"
    if not patching:
        code, _ = await ask("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    else:
        whole = {"containers": [{"name": "c", "image": "i"}]}
        await ask("POST", pods, {"metadata": {"name": "p"}, "spec": whole})
        kind = "application/strategic-merge-patch+json"
        code, _ = await ask("PATCH", f"{pods}/p", {"spec": spec}, kind)
    assert code < 500


POD = {"name": "c", "image": "i"}
FILES = [{"key": f"k{n}", "path": f"p{n}"} for n in range(6_000)]
PORTS = [{"containerPort": 80, "name": f"p{n}"} for n in range(6_000)]
DOMAINS = [{"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {}} for n in range(3_000)]  # fmt: skip
PULLING = [{"name": f"s{n}"} for n in range(6_000)]
OWNERS = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"u{n}"} for n in range(4_000)]
KEYS = [f"k{n}" for n in range(15_000)]


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        ("pods", {"spec": {"containers": [POD], "volumes": [
            {"name": "v", "configMap": {"name": "a", "items": FILES}}]}}),
        ("pods", {"spec": {"containers": [{**POD, "ports": PORTS}]}}),
        ("pods", {"spec": {"containers": [POD], "topologySpreadConstraints": DOMAINS}}),
        ("pods", {"spec": {"containers": [POD], "imagePullSecrets": PULLING}}),
        ("configmaps", {"metadata": {"name": "x", "ownerReferences": OWNERS}}),
        ("services", {"spec": {"ports": [{"port": 80}], "ipFamilies": KEYS}}),
    ],
)  # fmt: skip
async def test_what_may_not_be_repeated_is_looked_for_in_one_pass(
    ask: RequestSender, path: str, obj: Any
) -> None:
    whole = {"metadata": {"name": "x"}, **obj}
    code, _ = await ask("POST", f"/api/v1/namespaces/default/{path}", whole)
    assert code < 500


@pytest.mark.parametrize("meta", [[], "text", 5, [{"name": "a"}], None, {}])
async def test_an_apply_whose_metadata_is_none_is_refused(ask: RequestSender, meta: Any) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    kind = "application/apply-patch+yaml"
    code, status = await ask("PATCH", f"{CMS}/a", body, kind, query="fieldManager=m")
    assert code >= 400 or not meta
    assert status.get("message") != "Internal error occurred"


@pytest.mark.parametrize(
    "inner",
    [
        {"properties": "text"},
        {"properties": {"a": "text"}},
        {"properties": True},
        {"items": 5},
        {"allOf": ["text"]},
        {"not": [{}]},
        {"required": "a"},
        {"required": [1]},
        {"pattern": 5},
        {"maxLength": "5"},
        {"enum": {}},
        {"x-kubernetes-list-map-keys": [[]]},
        {"x-kubernetes-validations": ["text"]},
    ],
)
async def test_what_is_no_schema_is_refused(ask: RequestSender, inner: Any) -> None:
    assert await _define(ask, {"type": "object", **inner}) == 400


async def test_a_long_answer_as_yaml_is_written_soon(ask: RequestSender) -> None:
    for number in range(40):
        data = {f"k{n}": "v" for n in range(1000)}
        await ask("POST", CMS, {"metadata": {"name": f"c{number}"}, "data": data})
    code, listed = await ask("GET", CMS, accept="application/yaml")
    assert (code, len(listed["items"])) == (200, 40)


def test_a_rule_of_very_many_permissions_is_not_gone_through() -> None:
    many = [f"x{number}" for number in range(400)]
    rule = {"verbs": many, "apiGroups": many, "resources": many}
    with soon():
        every = {"verbs": ["*"], "apiGroups": ["*"]}
        halves = [{**every, "resources": one} for one in (many[1:], many[:1])]
        assert not is_held(rule, halves)
        assert is_held(rule, [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])
