"""Hostile requests get the right 4xx, never a 500, and never let anyone in."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.jsontypes import clone
from bayplan.embedded.apiserver.patch.patches import PatchRequest
from bayplan.embedded.apiserver.rest import writes
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.backends import call_of, kind_of, new_backend
from tests.embedded.apiserver.http_client import JSON_PATCH, MERGE, STRATEGIC, Http

PODS = "/api/v1/namespaces/default/pods"
CMS = "/api/v1/namespaces/default/configmaps"
POD = {
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"metadata": []}',
        b'{"metadata": {"name": 5}}',
        b'{"metadata": {"name": "a", "labels": ["x"]}}',
        b'{"metadata": {"name": "a", "ownerReferences": [1]}}',
        b'{"metadata": {"name": "a"}, "spec": 1}',
        b'{"metadata": {"name": "a"}, "spec": {"containers": {"a": 1}}}',
        b'{"metadata": {"name": "a"}, "spec": {"containers": [null]}}',
        b'{"metadata": {"name": "\\ud800"}}',
        b'{"a":' * 3000 + b"1" + b"}" * 3000,
        b"[" * 100_000,
        b'{"metadata": {"name": "a"}, "spec": {"priority": 99999999999999999999}}',
    ],
)
async def test_bodies_that_make_no_sense_are_bad_requests(http: Http, body: bytes) -> None:
    reply = await http("POST", PODS, body)
    assert reply.code in (400, 422)
    assert reply.body["kind"] == "Status"


@pytest.mark.parametrize(
    ("kind", "code"),
    [("text/plain", 415), ("application/xml", 415), ("application/json; charset=utf-8", 201)],
)
async def test_only_known_content_types_are_read(http: Http, kind: str, code: int) -> None:
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    assert (await http("POST", CMS, body, {"Content-Type": kind})).code == code


async def test_yaml_is_read_but_never_expanded(http: Http) -> None:
    yaml_type = {"Content-Type": "application/yaml"}
    fine = await http("POST", CMS, b"metadata: {name: a}\ndata: {x: z}\n", yaml_type)
    assert (fine.code, fine.body["data"]) == (201, {"x": "z"})
    bomb = b"a: &a [x, x]\nb: &b [*a, *a]\nmetadata: {name: b}\n"
    assert (await http("POST", CMS, bomb, yaml_type)).code == 400
    objects = b"metadata: !!python/object/apply:os.system ['true']\n"
    assert (await http("POST", CMS, objects, yaml_type)).code == 400


async def test_broken_protobuf_is_a_bad_request(http: Http) -> None:
    kind = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    for body in (
        b"",
        b"k8s\x00",
        b"k8s\x00\xff\xff\xff",
        b"k8s\x00\x0a\x05\x0a\x02v1",
        b"\x00" * 50,
    ):
        assert (await http("POST", PODS, body, kind)).code in (400, 415)


async def test_huge_bodies_are_refused(http: Http) -> None:
    body = b'{"metadata": {"name": "a"}, "data": {"x": "' + b"x" * (4 * 1024 * 1024) + b'"}}'
    async with http.session.post(CMS, data=io.BytesIO(body)) as response:
        assert response.status == 413


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/pods/..%2f..%2fsecrets",
        "/api/v1/namespaces/default%2fpods",
        "/api/v1/namespaces//pods",
        "/api/v1/%2e%2e/secrets",
        "/api/v1/namespaces/default/pods/a/b/c/d",
        "/api/v1/namespaces/default/pods/%00",
        "/api/v1/nopes",
        "/apis/nope.example.com/v1/things",
        "/api/v1/namespaces/default/nodes",
        "/apis/apps/v1/namespaces/default/deployments/x/nope",
        "/etc/passwd",
        "/%ff",
    ],
)
async def test_paths_that_lead_nowhere_are_not_found(http: Http, path: str) -> None:
    async with http.session.get(yarl.URL(path, encoded=True)) as response:
        assert response.status == 404


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/api/v1/pods", 405),
        ("PUT", PODS, 405),
        ("POST", f"{PODS}/a", 405),
        ("DELETE", "/version", 405),
        ("TRACE", PODS, 405),
        ("PROPFIND", PODS, 405),
        ("DELETE", "/api/v1/pods", 405),
        ("GET", f"{PODS}?labelSelector=a%20b%20c", 400),
        ("GET", f"{PODS}?labelSelector=a%20in%20(", 400),
        ("GET", f"{PODS}?fieldSelector=spec.secret%3D1", 400),
        ("GET", f"{PODS}?limit=-1", 200),
        ("GET", f"{PODS}?limit=999999999999999999999", 400),
        ("GET", f"{PODS}?continue=%00", 400),
        ("GET", f"{PODS}?continue=bm90IGpzb24=", 400),
        ("GET", f"{PODS}?resourceVersion=-5", 400),
        ("GET", f"{PODS}?resourceVersion=%D9%A3", 400),
        ("GET", f"{PODS}?watch=1&resourceVersion=x", 500),
        ("GET", f"{PODS}?watch=1&timeoutSeconds=x", 400),
        ("GET", f"{PODS}?watch=1&resourceVersion=99999999", 504),
    ],
)
async def test_questions_that_make_no_sense(http: Http, method: str, path: str, code: int) -> None:
    assert (await http(method, path)).code == code


async def test_formats_that_nobody_speaks_are_not_acceptable(http: Http) -> None:
    only_protobuf = await http.get(PODS, Accept="application/vnd.kubernetes.protobuf")
    assert only_protobuf.code == 406
    either = await http.get(PODS, Accept="application/vnd.kubernetes.protobuf, application/json")
    assert either.code == 200
    nonsense = await http.get(PODS, Accept=";;;q=,,=;text/*;q=zz")
    assert nonsense.code == 406


BAD_PATCHES: list[tuple[str, Any]] = [
    (JSON_PATCH, {"a": 1}),
    (JSON_PATCH, [1]),
    (JSON_PATCH, [{"op": "nope", "path": "/a"}]),
    (JSON_PATCH, [{"op": "add"}]),
    (JSON_PATCH, [{"op": "add", "path": "a", "value": 1}]),
    (JSON_PATCH, [{"op": "remove", "path": ""}]),
    (JSON_PATCH, [{"op": "replace", "path": "", "value": []}]),
    (JSON_PATCH, [{"op": "move", "from": "/metadata", "path": "/metadata/x"}]),
    (JSON_PATCH, [{"op": "remove", "path": "/spec/containers/01"}]),
    (JSON_PATCH, [{"op": "add", "path": "/spec/containers/99", "value": {}}]),
    (JSON_PATCH, [{"op": "test", "path": "/metadata/name", "value": "b"}]),
    (JSON_PATCH, [{"op": "remove", "path": "/metadata"}]),
    (MERGE, []),
    (MERGE, "x"),
    (MERGE, {"metadata": None}),
    (MERGE, {"spec": {"containers": "x"}}),
    (MERGE, {"metadata": {"name": "other"}}),
    (MERGE, {"metadata": {"namespace": "other"}}),
    (STRATEGIC, {"spec": {"containers": [{"image": "no key"}]}}),
    (STRATEGIC, {"spec": {"$patch": "explode"}}),
    (STRATEGIC, {"spec": {"containers": [5]}}),
    (STRATEGIC, {"spec": {"$setElementOrder/containers": 5, "containers": [{"name": "c"}]}}),
    (STRATEGIC, {"$retainKeys": 5}),
    ("application/apply-patch+yaml", {"kind": "Pod"}),
    ("application/json", {}),
]


@pytest.mark.parametrize(("kind", "patch"), BAD_PATCHES)
async def test_patches_that_cannot_be_carried_out(http: Http, kind: str, patch: Any) -> None:
    await http.post(PODS, POD)
    reply = await http.patch(f"{PODS}/a", patch, kind)
    assert reply.code >= 400, reply
    assert reply.body["message"] != "Internal error occurred"
    assert reply.body["kind"] == "Status"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "name",
                    "labels",
                    "spec",
                    "containers",
                    "status",
                    "$patch",
                    "finalizers",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(value=JSON_VALUES, kind=st.sampled_from([MERGE, STRATEGIC, JSON_PATCH, "create"]))
def test_no_json_value_is_ever_an_internal_error(value: Any, kind: str) -> None:
    """Whatever is wrong must come as a refusal; anything else would be the server's own fault."""

    async def attempt() -> None:
        backend = await new_backend()
        with closing(backend.store):
            await write(backend)

    async def write(backend: Backend) -> None:
        await writes.create(backend, call_of(backend, "pods"), clone(POD))
        if kind == "create":
            await writes.create(
                backend, call_of(backend, "pods"), value if isinstance(value, dict) else {}
            )
        else:
            change = PatchRequest(kind, value, kind_of(backend, "pods"))
            await writes.change(backend, call_of(backend, "pods", "a"), change.on)

    with suppress(StatusError):
        asyncio.run(attempt())


@pytest.mark.parametrize(
    "token", ["", "nope", "x" * 10_000, "nul", "Bearer", "' OR 1=1 --", "\u00e9"]
)
async def test_bad_tokens_let_nobody_in(server: ApiServer, token: str) -> None:
    async with Http(server, "") as http:
        reply = await http.get("/api/v1/secrets", Authorization=f"Bearer {token}")
        basic = await http.get("/api/v1/secrets", Authorization="Basic YWRtaW46YWRtaW4=")
        nothing = await http.get("/api/v1/secrets")
        open_path = await http.get("/readyz")
    assert (reply.code, basic.code, nothing.code, open_path.code) == (401, 401, 401, 200)
    assert reply.body["reason"] == "Unauthorized"


async def test_a_certificate_of_another_authority_is_refused(
    server: ApiServer, tmp_path: Path
) -> None:
    async with ApiServer(ServerConfig()) as stranger:
        pair = stranger.client_certificate("system:admin", ("system:masters",))
    path = tmp_path / "client.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=server.authority.pair.certificate.decode())
    context.load_cert_chain(path)
    with pytest.raises(aiohttp.ClientError):
        await _get_with(context, f"{server.url}/api/v1/secrets")


async def _get_with(context: ssl.SSLContext, url: str) -> None:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(url) as response,
    ):
        await response.read()


async def test_other_users_secrets_stay_secret(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("ann-token,ann,1\n")
    async with ApiServer(ServerConfig(tokens=tokens, authorization="rbac")) as server:
        async with Http(server) as admin:
            await admin.post("/api/v1/namespaces", {"metadata": {"name": "bobs"}})
            secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
            await admin.post("/api/v1/namespaces/bobs/secrets", secret)
        async with Http(server, "ann-token") as ann:
            for path in ("/api/v1/secrets", "/api/v1/namespaces/bobs/secrets/s"):
                for query in ("", "?watch=1", "?fieldSelector=metadata.name%3Ds", "?limit=1"):
                    reply = await ann.get(path + query)
                    assert (reply.code, reply.body["reason"]) == (403, "Forbidden")
                    assert "hunter2" not in json.dumps(reply.body)
            wanted = await ann.patch("/api/v1/namespaces/bobs/secrets/s", {"data": {"a": "Yg=="}})
            review = {"spec": {"token": server.admin_token}}
            reviewed = await ann.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
            assert (wanted.code, reviewed.code) == (403, 403)


async def _raw(server: ApiServer, data: bytes) -> bytes:
    context = ssl.create_default_context(cadata=server.authority.pair.certificate.decode())
    host, port = server.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    writer.write(data)
    answer = await reader.read(4096)
    writer.close()
    return answer


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api HTTP/1.1\r\nHost: x\r\nContent-Length: nope\r\n\r\n",
        b"GET /api HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n",
        b"\x16\x03\x01" * 50 + b"\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_cut_off(server: ApiServer, data: bytes) -> None:
    assert (await _raw(server, data)).startswith((b"HTTP/1.1 400", b""))
    async with Http(server) as http:
        assert (await http.get("/readyz")).code == 200


async def test_slow_clients_hold_nobody_up(server: ApiServer, http: Http) -> None:
    context = ssl.create_default_context(cadata=server.authority.pair.certificate.decode())
    host, port = server.address.split(":")
    slow = [await asyncio.open_connection(host, int(port), ssl=context) for _ in range(20)]
    for index, (_, writer) in enumerate(slow):
        head = f"POST {CMS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
        writer.write(head.encode() + (b"\r\n{" if index % 2 else b""))
    assert (await http.post(CMS, {"metadata": {"name": "quick"}})).code == 201
    for _, writer in slow:
        writer.transport.abort()
