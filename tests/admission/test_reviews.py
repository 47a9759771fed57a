"""Hostile reviews: huge, deep, of wrong types, unfinished; each gets an answer that says why."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.admission.app import MOST_BYTES, BodyReader, RejectedRequest
from bayplan.lab import run_virtually
from tests.admission.reviews import HEADERS, ask, make_app, review, send
from tests.admission.test_gates import ASKS, pod

PATHS = ("/pods/mutate", "/pods/validate", "/queues/validate", "/podgroups/validate")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not an AdmissionReview"),
        (b"not json", "not an AdmissionReview"),
        (b"\xff\xfe", "not an AdmissionReview"),
        (b"[]", "not an AdmissionReview"),
        (b"null", "not an AdmissionReview"),
        (b"{}", "not an AdmissionReview"),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}', "v1beta1"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "without a request"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":3}', "request"),
        (json.dumps(review("pods", "EXPLODE", {})).encode(), "operation"),
        (b"[" * 100_000, "not an AdmissionReview"),
        (b'{"request":' + b'{"a":' * 100_000, "not an AdmissionReview"),
    ],
)
async def test_what_is_no_review_is_told_so(body: bytes, said: str) -> None:
    for path in PATHS:
        answer = await send(make_app(), path, body)
        assert answer.status == 400
        assert said in answer.body.decode()
        assert len(answer.body) < 2000


@pytest.mark.parametrize(
    ("resource", "path", "obj"),
    [
        ("pods", "/pods/mutate", []),
        ("pods", "/pods/mutate", "pod"),
        ("pods", "/pods/mutate", {"spec": []}),
        ("pods", "/pods/validate", {"metadata": {"annotations": {"a": 1}}, "spec": {}}),
        ("pods", "/pods/validate", {"spec": {"containers": {"a": 1}}}),
        ("queues", "/queues/validate", None),
        ("queues", "/queues/validate", {"metadata": {"name": "q"}, "spec": {"weight": "heavy"}}),
        ("queues", "/queues/validate", {"metadata": {"name": "q"}, "spec": {"weight": 2**80}}),
        ("podgroups", "/podgroups/validate", {"spec": {"minMember": 1.5}}),
        ("podgroups", "/podgroups/validate", {"spec": {"minTaskMember": [1]}}),
    ],
)
async def test_an_object_of_wrong_types_is_refused_by_a_review(
    resource: str, path: str, obj: object
) -> None:
    answer = await ask(make_app(), path, review(resource, "CREATE", obj))
    assert answer.refusal


async def test_nulls_are_what_is_left_out() -> None:
    made = pod(ASKS, schedulingGates=None, initContainers=None, resources=None, overhead=None)
    made["metadata"]["creationTimestamp"] = None
    made["spec"]["containers"][0]["resources"] = None
    assert (await ask(make_app(), "/pods/mutate", review("pods", "CREATE", made))).patch
    queue = {"metadata": {"name": "q", "creationTimestamp": None}, "spec": {"capability": None}}
    asked = review("queues", "CREATE", queue)
    assert not (await ask(make_app(), "/queues/validate", asked)).refusal


async def test_a_deep_object_is_refused() -> None:
    deep = '{"a":' * 50_000 + "1" + "}" * 50_000
    body = json.dumps(review("pods", "CREATE", "OBJECT")).replace('"OBJECT"', deep).encode()
    assert (await send(make_app(), "/pods/mutate", body)).status == 400


async def test_a_huge_body_is_not_read() -> None:
    answer = await send(make_app(), "/pods/mutate", b" " * (MOST_BYTES + 1))
    assert answer.status == 413
    lying = (*HEADERS, ("Content-Length", "9" * 400))
    assert (await send(make_app(), "/pods/mutate", b"{}", headers=lying)).status == 413


async def test_a_large_review_is_answered() -> None:
    made = pod({**ASKS, "example.com/much": "x" * 3_000_000})
    assert (await ask(make_app(), "/pods/mutate", review("pods", "CREATE", made))).patch


@pytest.mark.parametrize(
    ("path", "method", "headers", "status", "text"),
    [
        ("/pods/mutate", "GET", HEADERS, 405, "the method must be POST"),
        ("/elsewhere", "POST", HEADERS, 404, "unknown path; known paths: /pods/mutate, "),
        ("/pods/mutate", "POST", (("Content-Type", "text/yaml"),), 415, "the content type must be"),
    ],
)
async def test_other_requests_are_refused_with_the_reason(
    path: str, method: str, headers: tuple[tuple[str, str], ...], status: int, text: str
) -> None:
    answer = await send(make_app(), path, b"{}", method=method, headers=headers)
    assert answer.status == status
    assert answer.body.startswith(text.encode())


@pytest.mark.virtual
async def test_a_body_that_never_ends_is_given_up() -> None:
    sent: list[dict[str, Any]] = []

    async def nothing() -> object:
        return await asyncio.get_running_loop().create_future()

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/pods/mutate", "headers": []}
    await make_app()(scope, nothing, keep)
    assert sent[0]["status"] == 408


@pytest.mark.virtual
async def test_slow_senders_cannot_fill_the_memory() -> None:
    bodies = BodyReader(most_at_once=10_000)
    scope: dict[str, Any] = {"headers": []}

    async def stalls_after(part: bytes) -> bytes:
        sent = iter([{"type": "http.request", "body": part, "more_body": True}])

        async def receive() -> object:
            return next(sent, None) or await asyncio.get_running_loop().create_future()

        return await bodies.read(scope, receive)

    slow = [asyncio.ensure_future(stalls_after(b"x" * 4000)) for _ in range(5)]
    outcomes = await asyncio.gather(*slow, return_exceptions=True)
    statuses = [one.reply.status for one in outcomes if isinstance(one, RejectedRequest)]
    assert sorted(statuses) == [408, 408, 503, 503, 503]

    async def whole() -> object:
        return {"type": "http.request", "body": b"y" * 9000}

    assert await bodies.read(scope, whole) == b"y" * 9000


@pytest.mark.virtual
async def test_questions_about_queues_wait_until_these_are_known() -> None:
    app = make_app()
    app.knows_queues.clear()
    queue = {"metadata": {"name": "q"}, "spec": {}}
    answer = await ask(app, "/queues/validate", review("queues", "CREATE", queue))
    assert (answer.status, answer.body) == (503, b"queues are not loaded yet\n")
    assert (await ask(app, "/pods/mutate", review("pods", "CREATE", pod(ASKS)))).patch


async def test_refusals_are_short_and_printable() -> None:
    made = pod({"scheduling.k8s.io/group-name": "\x1b[2J" * 5000})
    said = (await ask(make_app(), "/pods/validate", review("pods", "CREATE", made))).refusal
    assert said.isprintable()
    assert len(said) < 1100


async def test_what_was_answered_is_counted() -> None:
    registry = CollectorRegistry()
    app = make_app(registry=registry)
    await ask(app, "/pods/mutate", review("pods", "CREATE", pod(ASKS)))
    await ask(app, "/pods/mutate", review("pods", "CREATE", []))
    await send(app, "/nowhere/" + "x" * 50, b"")
    told = generate_latest(registry).decode()
    counted = 'bayplan_webhook_verdicts_total{operation="CREATE",path="/pods/mutate",verdict='
    assert f'{counted}"patched"}} 1.0' in told
    assert f'{counted}"refused"}} 1.0' in told
    assert 'bayplan_webhook_requests_total{code="404",path="other"} 1.0' in told


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "name", "annotations", "spec", "parent", "capability", "cpu", "queue"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=60)
@given(
    path=st.sampled_from(PATHS),
    resource=st.sampled_from(["pods", "queues", "podgroups"]),
    operation=st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    obj=JSON,
    old=JSON,
    subresource=st.sampled_from(["", "status"]),
)
def test_any_object_gets_a_yes_or_a_no(
    path: str, resource: str, operation: str, obj: object, old: object, subresource: str
) -> None:
    async def asked() -> None:
        request = review(resource, operation, obj, old, subresource=subresource, name="q")
        assert (await ask(make_app(), path, request)).response["allowed"] in (True, False)

    run_virtually(asked())
