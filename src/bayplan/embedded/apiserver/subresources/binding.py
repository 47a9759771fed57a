"""Binding: the one way in which a pod gets its node."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import ApiError, Cause, conflict, failed_precondition
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest import writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.strategies.podstatus import set_condition
from bayplan.embedded.apiserver.validation.causes import not_supported, required


async def bind(backend: Backend, call: Call, binding: JsonObject) -> Entry:
    """Give a pod to a node; 409 if it is gated, going, or already somewhere."""
    node = _target(binding)
    inner = Call(call.user, call.kind, call.namespace, call.name, "binding", call.dry_run)
    request = AdmissionRequest("CREATE", inner, binding)
    await backend.admission.mutate(request)
    await backend.admission.validate(request)
    meta = (request.object or binding).get("metadata") or {}

    def assign(pod: JsonObject) -> JsonObject:
        _check(call, pod, meta)
        pod["spec"]["nodeName"] = node
        for field in ("annotations", "labels"):
            if meta.get(field):
                pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **meta[field]}
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        set_condition(status, {"type": "PodScheduled", "status": "True"}, backend.now())
        return pod

    return await writing.change(backend, inner, assign, trusted=True)


def _target(binding: JsonObject) -> str:
    """The node; kube-apiserver answers with 500 to a binding that names none."""
    target = binding.get("target") or {}
    found: list[Cause] = []
    if target.get("kind") not in (None, "", "Node"):
        found.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        found.append(required("target.name"))
    texts = [f"{one.field}: {one.message}" for one in found]
    if texts:
        raise ApiError(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return str(target["name"])


def _check(call: Call, pod: JsonObject, meta: JsonObject) -> None:
    found = pod["metadata"]
    for name, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = meta.get(name)
        if wanted and wanted != found[name]:
            why = f"{shown} in precondition: {wanted}, {shown} in object meta: {found[name]}"
            key = f"/pods/{call.namespace}/{call.name}"
            raise failed_precondition("", "pods", call.name, key, why)
    why = _obstacle(pod)
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
