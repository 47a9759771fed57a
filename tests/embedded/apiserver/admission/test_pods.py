"""What admission fills in for a pod: its priority, its overhead."""

from __future__ import annotations

from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.pods import PODS, pod


async def test_priority_is_resolved_from_its_class(http: Http) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await http.post(classes, {"metadata": {"name": "high"}, "value": 100})
    made = (await http.post(PODS, pod(priorityClassName="high"))).body
    assert made["spec"]["priority"] == 100
    unknown = await http.post(PODS, pod("b", priorityClassName="nope"))
    assert (unknown.code, unknown.body["reason"]) == (403, "Forbidden")
    own = await http.post(PODS, pod("c", priorityClassName="high", priority=5))
    assert own.code == 403
    default = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
    await http.post(classes, default)
    assert (await http.post(PODS, pod("d"))).body["spec"]["priority"] == 7


async def test_a_runtime_class_brings_overhead_and_placement(http: Http) -> None:
    runtime = {
        "metadata": {"name": "sandbox"},
        "handler": "sandboxed",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"sandbox": "yes"}},
    }
    await http.post("/apis/node.k8s.io/v1/runtimeclasses", runtime)
    spec = (await http.post(PODS, pod(runtimeClassName="sandbox"))).body["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"sandbox": "yes"})
    assert (await http.post(PODS, pod("b", runtimeClassName="nope"))).code == 403
