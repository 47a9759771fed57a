"""Reviews as an API server sends them, and what the webhook answers."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from bayplan.admission.app import AdmissionApp
from bayplan.admission.metrics import AdmissionMetrics
from bayplan.admission.queue_index import QueueIndex
from bayplan.admission.rules import AdmissionRules, AdmissionSettings
from bayplan.embedded.asgi import AsgiRequest, call_app
from bayplan.kube.gates import FeatureGates

GROUP = "scheduling.volcano.sh"
GATE = f"{GROUP}/queue-allocation-gate"
HEADERS = (("Content-Type", "application/json"),)


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes

    @property
    def response(self) -> dict[str, Any]:
        """The answered review's response."""
        assert self.status == 200, self
        review = json.loads(self.body)
        assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        found: dict[str, Any] = review["response"]
        assert found["uid"] == "u-1"
        return found

    @property
    def refusal(self) -> str:
        """Why it was refused; empty if it was not."""
        response = self.response
        return "" if response["allowed"] else response["status"]["message"]

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The operations of the patch."""
        response = self.response
        if "patch" not in response:
            return []
        assert response["patchType"] == "JSONPatch"
        found: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
        return found


def make_app(
    index: QueueIndex | None = None,
    *,
    schedulers: tuple[str, ...] = ("bayplan",),
    gates: str = "",
    registry: CollectorRegistry | None = None,
) -> AdmissionApp:
    """A webhook that knows those queues."""
    settings = AdmissionSettings(frozenset(schedulers), FeatureGates.parse(gates))
    metrics = AdmissionMetrics(registry or CollectorRegistry())
    app = AdmissionApp(AdmissionRules(settings, index or QueueIndex()), metrics)
    app.knows_queues.set()
    return app


def review(
    resource: str,
    operation: str,
    obj: object = None,
    old: object = None,
    *,
    subresource: str = "",
    name: str = "",
) -> dict[str, Any]:
    """A question."""
    version = "v1" if resource == "pods" else "v1beta1"
    where = {"group": "" if resource == "pods" else GROUP, "version": version}
    request = {
        "uid": "u-1",
        "operation": operation,
        "resource": {**where, "resource": resource},
        "subResource": subresource,
        "name": name,
        "namespace": "default",
        "userInfo": {"username": "somebody"},
        "object": obj,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def ask(app: AdmissionApp, path: str, asked: dict[str, Any]) -> Answer:
    """What the webhook answers to a review."""
    return await send(app, path, json.dumps(asked).encode())


async def send(
    app: AdmissionApp,
    path: str,
    body: bytes,
    *,
    method: str = "POST",
    headers: tuple[tuple[str, str], ...] = HEADERS,
) -> Answer:
    """What the webhook answers to a request."""
    async with call_app(app, AsgiRequest(method, path, "", headers, body)) as reply:
        parts = []
        while part := await reply.next_chunk():
            parts.append(part)
        return Answer(reply.status, b"".join(parts))
