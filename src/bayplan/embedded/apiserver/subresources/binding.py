"""Binding: the one way in which a pod gets its node."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import conflict, invalid
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest import writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.validation.causes import not_supported, required


async def bind(backend: Backend, call: Call, binding: JsonObject) -> Entry:
    """Give a pod to a node; 409 if it is gated, going, or already somewhere."""
    node = _target(call, binding)
    meta = binding.get("metadata") or {}

    def assign(pod: JsonObject) -> JsonObject:
        _check(call, pod, meta)
        pod["spec"]["nodeName"] = node
        for field in ("annotations", "labels"):
            if meta.get(field):
                pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **meta[field]}
        _mark_scheduled(pod, backend.now())
        return pod

    inner = Call(call.user, call.kind, call.namespace, call.name, "binding", call.dry_run)
    request = AdmissionRequest("CREATE", inner, binding)
    await backend.admission.mutate(request)
    await backend.admission.validate(request)
    return await writing.change(backend, inner, assign, trusted=True)


def _target(call: Call, binding: JsonObject) -> str:
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        problem = not_supported("target.kind", target["kind"], ("Node", "<empty>"))
        raise invalid("", "Binding", call.name, [problem])
    name = target.get("name")
    if not name:
        raise invalid("", "Binding", call.name, [required("target.name")])
    return str(name)


def _check(call: Call, pod: JsonObject, meta: JsonObject) -> None:
    found = pod["metadata"]
    why = _obstacle(pod)
    wanted = meta.get("uid")
    if wanted and wanted != found["uid"]:
        why = writing.other_uid(wanted, found["uid"])
    if why:
        raise conflict("", "pods/binding", call.name, why)


def _obstacle(pod: JsonObject) -> str:
    name = pod["metadata"]["name"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    node = pod["spec"].get("nodeName")
    if node:
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _mark_scheduled(pod: JsonObject, now: str) -> None:
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    others = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    status["conditions"] = [*others, scheduled]
