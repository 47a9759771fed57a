"""A daemon of the tests' own: it serves a kind of its own making, and places pods as that says.

It elects itself, makes a CRD, follows pods, nodes and its own objects by informers, binds, writes
what it did into its object's status, and its webhook stamps every pod. Nothing in it knows whether
it is on the wall's clock and HTTPS, or in virtual time.
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress
from typing import Any

from bayplan.client import Change, Client, Informers, Untyped, merge, untyped
from bayplan.client.daemon import elect
from bayplan.client.errors import AlreadyExistsError, ConflictError
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

STAMP = "example.com/stamped-at"
POLICIES = untyped("example.com", "v1", "policies", "Policy", namespaced=False)
CRD: Untyped = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "policies.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "policies", "singular": "policy", "kind": "Policy"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def webhook(client_config: dict[str, Any]) -> dict[str, Any]:
    """The configuration that sends new pods to the daemon's webhook."""
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "stamps"},
        "webhooks": [
            {
                "name": "stamps.example.com",
                "clientConfig": client_config,
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


async def stamping(scope: Any, receive: Any, send: Any) -> None:
    """The webhook, as an ASGI application."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    asked = json.loads(body)["request"]
    annotations = {STAMP: asked["userInfo"]["username"]}
    patch = [{"op": "add", "path": "/metadata/annotations", "value": annotations}]
    response = {
        "uid": asked["uid"],
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": json.dumps(review).encode()})


async def lead(client: Client) -> None:
    """Place every pod on the node that the policy names next, until cancelled."""
    with suppress(AlreadyExistsError):
        await client.create(CRD)
    with suppress(AlreadyExistsError):
        policy = {"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": "all"}}
        await client.create({**policy, "spec": {"pause": 1}}, POLICIES)
    waiting: asyncio.Queue[Pod] = asyncio.Queue()

    def notice(change: Change[Pod]) -> None:
        if change.type == "added" and not change.object.spec.node_name:
            waiting.put_nowait(change.object)

    async with Informers(client) as informers:
        pods, nodes = informers.of(Pod), informers.of(Node)
        policies = informers.of(POLICIES)
        await informers.synced()
        pods.on_change(notice)
        for count in range(1_000_000):
            pod = await waiting.get()
            while not nodes.objects or not policies.objects:
                await client.clock.sleep(1)
            names = sorted(nodes.objects)
            with suppress(ConflictError):
                await client.bind(
                    pod.metadata.namespace, pod.metadata.name, names[count % len(names)]
                )
            status = merge({"status": {"placed": count + 1, "odds": client.rng.random()}})
            await client.patch(POLICIES, "all", change=status, subresource="status")


main = elect(lead, "test-placer")
