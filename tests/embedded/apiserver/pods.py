"""Pods as a client sends them."""

from __future__ import annotations

from typing import Any

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def asking(**requests: str) -> dict[str, Any]:
    resources = {"requests": requests}
    return pod(containers=[{"name": "main", "image": "example/app", "resources": resources}])


def binding(node: str = "n1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **meta}, "target": {"kind": "Node", "name": node}}


GATED: dict[str, Any] = {
    "schedulingGates": [{"name": "example.com/wait"}, {"name": "example.com/other"}]
}
