"""Admission webhooks: real HTTPS servers that change or refuse writes."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.http_client import Http

PODS = "/api/v1/namespaces/default/pods"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

Decide = Callable[[dict[str, Any]], dict[str, Any]]


class RecordingWebhook:
    """A webhook that remembers what it was asked."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        self.asked.append(asked)
        response = {"uid": asked["uid"], "allowed": True, **self._decide(asked)}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**review, "response": response})


@asynccontextmanager
async def running(
    server: ApiServer, folder: Path, decide: Decide
) -> AsyncIterator[RecordingWebhook]:
    hook = RecordingWebhook(decide)
    pair = server.authority.server_pair(["127.0.0.1"], server.config.clock.now())
    path = folder / "hook.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    app = web.Application()
    app.router.add_post("/", hook.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    hook.url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    yield hook
    await runner.cleanup()


def configured(server: ApiServer, kind: str, url: str, **options: Any) -> dict[str, Any]:
    ca = base64.b64encode(server.authority.pair.certificate).decode()
    rule = {
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    webhook = {
        "name": "hook.example.com",
        "clientConfig": {"url": url, "caBundle": ca},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **options,
    }
    return {"metadata": {"name": kind.lower()}, "webhooks": [webhook]}


async def install(http: Http, server: ApiServer, kind: str, url: str, **options: Any) -> None:
    path = f"{HOOKS}/{kind.lower()}webhookconfigurations"
    reply = await http.post(path, configured(server, kind, url, **options))
    assert reply.code == 201, reply


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"patchType": "JSONPatch", "patch": encoded}


GATE = {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "example.com/wait"}]}


async def test_a_mutating_webhook_changes_what_is_stored(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    async with running(server, tmp_path, lambda _: patch(GATE)) as hook:
        await install(http, server, "Mutating", hook.url)
        made = (await http.post(PODS, POD)).body
    assert made["spec"]["schedulingGates"] == [{"name": "example.com/wait"}]
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    (asked,) = hook.asked
    assert (asked["operation"], asked["resource"]["resource"]) == ("CREATE", "pods")
    assert asked["object"]["spec"]["restartPolicy"] == "Always"
    assert asked["userInfo"]["username"] == "system:admin"


async def test_a_validating_webhook_refuses(server: ApiServer, http: Http, tmp_path: Path) -> None:
    def decide(_: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": False, "status": {"message": "not today"}, "warnings": ["careful"]}

    async with running(server, tmp_path, decide) as hook:
        await install(http, server, "Validating", hook.url)
        refused = await http.post(PODS, POD)
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    message = 'admission webhook "hook.example.com" denied the request: not today'
    assert refused.body["message"] == message
    assert (await http.get(f"{PODS}/a")).code == 404


async def test_updates_and_deletes_are_asked_about_with_the_old_object(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    await http.post(PODS, POD)
    async with running(server, tmp_path, lambda _: {}) as hook:
        await install(http, server, "Validating", hook.url)
        await http.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
        await http.delete(f"{PODS}/a")
    update, delete = hook.asked
    assert update["object"]["metadata"]["labels"] == {"x": "y"}
    assert "labels" not in update["oldObject"]["metadata"]
    assert (delete["operation"], delete["object"]) == ("DELETE", None)
    assert delete["oldObject"]["metadata"]["name"] == "a"


async def test_a_failing_webhook_counts_as_its_policy_says(server: ApiServer, http: Http) -> None:
    nowhere = "https://127.0.0.1:1/"
    await install(http, server, "Validating", nowhere, failurePolicy="Fail")
    refused = await http.post(PODS, POD)
    assert refused.code == 500
    assert 'failed calling webhook "hook.example.com"' in refused.body["message"]
    await http.delete(f"{HOOKS}/validatingwebhookconfigurations/validating")
    await install(http, server, "Validating", nowhere, failurePolicy="Ignore")
    assert (await http.post(PODS, POD)).code == 201


async def test_a_slow_webhook_is_given_up(server: ApiServer, http: Http) -> None:
    done = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        url = f"https://127.0.0.1:{port}/"
        await install(http, server, "Validating", url, timeoutSeconds=1)
        refused = await http.post(PODS, POD)
        done.set()
    assert refused.code == 500
    assert "context deadline exceeded" in refused.body["message"]


async def test_an_answer_that_makes_no_sense_is_a_failure(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    async with running(server, tmp_path, lambda _: {"uid": "other"}) as hook:
        await install(http, server, "Mutating", hook.url)
        assert (await http.post(PODS, POD)).code == 500


async def test_selectors_say_which_writes_a_webhook_sees(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    await http.post("/api/v1/namespaces", {"metadata": {"name": "in", "labels": {"x": "y"}}})
    async with running(server, tmp_path, lambda _: {}) as hook:
        await install(
            http,
            server,
            "Validating",
            hook.url,
            namespaceSelector={"matchLabels": {"x": "y"}},
            objectSelector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
        )
        await http.post(PODS, POD)
        await http.post("/api/v1/namespaces/in/pods", POD)
        skipped = {**POD, "metadata": {"name": "b", "labels": {"skip": "1"}}}
        await http.post("/api/v1/namespaces/in/pods", skipped)
        await http.post("/api/v1/namespaces/in/configmaps", {"metadata": {"name": "c"}})
    assert [(asked["namespace"], asked["name"]) for asked in hook.asked] == [("in", "a")]


async def test_a_webhook_is_asked_again_after_later_changes(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    label = {"op": "add", "path": "/metadata/labels", "value": {"late": "1"}}

    def first(asked: dict[str, Any]) -> dict[str, Any]:
        seen = "late" in (asked["object"]["metadata"].get("labels") or {})
        return (
            patch({"op": "add", "path": "/metadata/annotations", "value": {"seen": "1"}})
            if seen
            else {}
        )

    async with (
        running(server, tmp_path, first) as early,
        running(server, tmp_path, lambda _: patch(label)) as late,
    ):
        body = configured(server, "a", early.url, reinvocationPolicy="IfNeeded")
        await http.post(f"{HOOKS}/mutatingwebhookconfigurations", body)
        body = configured(server, "b", late.url)
        await http.post(f"{HOOKS}/mutatingwebhookconfigurations", body)
        made = (await http.post(PODS, POD)).body
    assert (len(early.asked), len(late.asked)) == (2, 1)
    assert made["metadata"]["annotations"] == {"seen": "1"}


async def test_equivalent_kinds_are_matched_and_exact_ones_are_not(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["events.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["events"],
    }
    event = {
        "metadata": {"name": "e"},
        "message": "hello",
        "involvedObject": {"kind": "Pod", "name": "a"},
    }
    async with running(server, tmp_path, lambda _: {}) as hook:
        await install(http, server, "Validating", hook.url, rules=[rule], matchPolicy="Exact")
        await http.post("/api/v1/namespaces/default/events", event)
        assert hook.asked == []
        await http.delete(f"{HOOKS}/validatingwebhookconfigurations/validating")
        await install(http, server, "Validating", hook.url, rules=[rule])
        event["metadata"] = {"name": "f"}
        await http.post("/api/v1/namespaces/default/events", event)
    (asked,) = hook.asked
    assert (asked["kind"]["group"], asked["requestKind"]["group"]) == ("events.k8s.io", "")
    assert asked["object"]["note"] == "hello"


async def test_a_dry_run_asks_only_webhooks_without_side_effects(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    async with running(server, tmp_path, lambda _: {}) as hook:
        await install(http, server, "Validating", hook.url, sideEffects="Some")
        refused = await http.post(f"{PODS}?dryRun=All", POD)
    assert (refused.code, hook.asked) == (400, [])


async def test_a_webhook_cannot_make_a_request_be_about_another_object(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    rename = {"op": "replace", "path": "/metadata/name", "value": "other"}
    async with running(server, tmp_path, lambda _: patch(rename)) as hook:
        await install(http, server, "Mutating", hook.url)
        refused = await http.post(PODS, POD)
    assert refused.code == 400
    assert (await http.get(f"{PODS}/other")).code == 404


async def test_a_configuration_counts_as_it_is_at_each_write(
    server: ApiServer, http: Http, tmp_path: Path
) -> None:
    async with running(server, tmp_path, lambda _: {}) as hook:
        place = f"{HOOKS}/validatingwebhookconfigurations/validating"
        await install(http, server, "Validating", hook.url)
        await http.post(PODS, POD)
        assert len(hook.asked) == 1
        others = configured(server, "Validating", hook.url)
        others["webhooks"][0]["rules"][0]["resources"] = ["services"]
        await http.patch(place, {"webhooks": others["webhooks"]})
        await http.post(PODS, {**POD, "metadata": {"name": "b"}})
        assert len(hook.asked) == 1
        await http.patch(place, {"webhooks": configured(server, "", hook.url)["webhooks"]})
        await http.delete(f"{PODS}/b")
        assert len(hook.asked) == 2
        await http.delete(place)
        await http.delete(f"{PODS}/a")
        assert len(hook.asked) == 2
