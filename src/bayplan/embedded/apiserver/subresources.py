"""Subresources with their own logic: binding, scale and eviction.

Evicting a pod that does not run, or is terminating, is no disruption. Nor does a running pod that
is not ready count as healthy: `unhealthyPodEvictionPolicy` decides whether it may be evicted always
(AlwaysAllow), or only while enough others are healthy (IfHealthyBudget, the default). Neither uses
up the budget, so the pod is deleted only if it is unchanged since that was decided.
"""

from __future__ import annotations

from dataclasses import replace

from bayplan.embedded.apiserver.errors import (
    FieldCause,
    StatusError,
    conflict,
    failed_precondition,
    forbidden,
    invalid,
    modified,
)
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.catalog import value_at
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.request import Call, DeletionOptions
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.selectors import matches_selector
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.strategies.pods import set_condition
from bayplan.embedded.apiserver.validation.causes import bad_value, not_supported, required


async def bind(backend: Backend, call: Call, binding: JsonObject) -> StoreEntry:
    """Bind a pod to a node; 409 if it is gated, terminating or already bound."""
    node = _target(binding)
    inner = Call(call.user, call.kind, call.namespace, call.name, "binding", call.dry_run)
    request = AdmissionRequest("CREATE", inner, binding)
    await backend.admission.mutate(request)
    await backend.admission.validate(request)
    meta = (request.object or binding).get("metadata") or {}

    def assign(pod: JsonObject) -> JsonObject:
        _check_binding(call, pod, meta)
        pod["spec"]["nodeName"] = node
        for field in ("annotations", "labels"):
            if meta.get(field):
                pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **meta[field]}
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        set_condition(status, {"type": "PodScheduled", "status": "True"}, backend.now())
        return pod

    return await writes.change(backend, inner, assign, trusted=True)


def _target(binding: JsonObject) -> str:
    """Return the node; like kube-apiserver, 500 for a binding that names none."""
    target = binding.get("target") or {}
    found: list[FieldCause] = []
    if target.get("kind") not in (None, "", "Node"):
        found.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        found.append(required("target.name"))
    texts = [f"{one.field}: {one.message}" for one in found]
    if texts:
        raise StatusError(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return str(target["name"])


def _check_binding(call: Call, pod: JsonObject, meta: JsonObject) -> None:
    found = pod["metadata"]
    for name, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = meta.get(name)
        if wanted and wanted != found[name]:
            detail = f"{shown} in precondition: {wanted}, {shown} in object meta: {found[name]}"
            key = f"/pods/{call.namespace}/{call.name}"
            raise failed_precondition("", "pods", call.name, key, detail)
    detail = _obstacle(pod)
    if detail:
        raise conflict("", "pods/binding", call.name, detail)


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


_BUILTIN = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}


def _paths(kind: ServedKind) -> dict[str, str]:
    return (kind.custom.scale if kind.custom is not None else None) or _BUILTIN


def scale_of(kind: ServedKind, obj: JsonObject) -> JsonObject:
    """Return the scale of a workload."""
    paths, meta = _paths(kind), obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": _read(obj, paths["statusReplicasPath"]) or 0}
    selector = _selector(obj, paths.get("labelSelectorPath"), kind.custom is not None)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": _read(obj, paths["specReplicasPath"]) or 0},
        "status": status,
    }


def with_scale(kind: ServedKind, obj: JsonObject, scale: JsonObject) -> JsonObject:
    """Return the workload with the wanted number of replicas."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if type(replicas) is not int or not 0 <= replicas < 2**31:
        detail = "must be greater than or equal to 0"
        problem = bad_value("spec.replicas", replicas, detail)
        raise invalid("autoscaling", "Scale", obj["metadata"]["name"], [problem])
    *parents, last = _paths(kind)["specReplicasPath"].lstrip(".").split(".")
    inner = obj
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last] = replicas
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        obj["metadata"]["resourceVersion"] = version
    return obj


def _read(obj: JsonObject, path: str) -> JsonValue:
    return value_at(obj, path.lstrip("."))


def _selector(obj: JsonObject, path: str | None, custom: bool) -> str:
    if custom:
        return str(_read(obj, path) or "") if path else ""
    selector = (obj.get("spec") or {}).get("selector") or {}
    parts = [f"{key}={value}" for key, value in _match_labels(selector).items()]
    parts += [_expression(one) for one in selector.get("matchExpressions") or ()]
    return ",".join(parts)


def _match_labels(selector: JsonObject) -> JsonObject:
    if "matchLabels" in selector or "matchExpressions" in selector:
        return selector.get("matchLabels") or {}
    return selector


def _expression(expression: JsonObject) -> str:
    key, operator = str(expression.get("key", "")), str(expression.get("operator", ""))
    values = ",".join(expression.get("values") or ())
    texts = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return texts.get(operator, key)


_BUDGETS = "poddisruptionbudgets.policy"
_RETRY_SECONDS = 10
_ATTEMPTS = 5
_MAX_DISRUPTED = 2000
"""Limit of evictions that the disruption controller has not processed yet."""
_DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


async def evict(backend: Backend, call: Call, options: DeletionOptions) -> None:
    """Delete a pod, or raise 429 if its disruption budget does not allow it now."""
    for attempt in range(_ATTEMPTS):
        pod = backend.require(call)
        if not _is_harmless(pod):
            return await _evict_guarded(backend, call, options, pod)
        try:
            return await _mark_and_delete(
                backend, call, options if _is_terminal(pod) else _if_unchanged(options, pod)
            )
        except StatusError as problem:
            again = problem.code == 409 and not options.resource_version
            if not again or attempt == _ATTEMPTS - 1:
                raise
    raise modified("", "pods", call.name)


async def _evict_guarded(
    backend: Backend, call: Call, options: DeletionOptions, pod: StoreEntry
) -> None:
    budget = _budget(backend, call, pod)
    if budget is None or not _is_exempt(budget.object(), pod):
        if budget is not None:
            await _spend(backend, call, budget)
        return await _mark_and_delete(backend, call, options)
    try:
        return await _mark_and_delete(backend, call, _if_unchanged(options, pod))
    except StatusError as problem:
        if problem.code == 409 and not options.resource_version:
            raise _busy(budget.key.name) from problem
        raise


def _if_unchanged(options: DeletionOptions, pod: StoreEntry) -> DeletionOptions:
    """Return the same delete options, limited to the pod's current version."""
    if options.resource_version:
        return options
    return replace(options, resource_version=str(pod.revision))


def _is_terminal(pod: StoreEntry) -> bool:
    """Return whether a pod has ended or is terminating."""
    return pod.is_terminating or pod.fields.get("status.phase", "") in ("Succeeded", "Failed")


def _is_harmless(pod: StoreEntry) -> bool:
    return _is_terminal(pod) or pod.fields.get("status.phase", "") == "Pending"


def _budget(backend: Backend, call: Call, pod: StoreEntry) -> StoreEntry | None:
    """Return the disruption budget of a pod, or None."""
    found = [one for one in backend.store.list(_BUDGETS, call.namespace) if _covers(one, pod)]
    if len(found) > 1:
        raise StatusError(500, "", _SEVERAL)
    return found[0] if found else None


def _is_exempt(budget: JsonObject, pod: StoreEntry) -> bool:
    """Return whether the policy allows evicting an unhealthy pod without using the budget."""
    if _is_ready(pod.object()):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy") or 0
    return 0 < wanted <= (status.get("currentHealthy") or 0)


def _is_ready(pod: JsonObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


async def _mark_and_delete(backend: Backend, call: Call, options: DeletionOptions) -> None:
    """Set the DisruptionTarget condition of the pod, and delete it."""
    if not call.dry_run:
        options = await _mark(backend, call, options)
    inner = Call(call.user, call.kind, call.namespace, call.name, dry_run=call.dry_run)
    await deletion.delete(backend, inner, options)


async def _mark(backend: Backend, call: Call, options: DeletionOptions) -> DeletionOptions:
    def mark(obj: JsonObject) -> JsonObject:
        _check_eviction(call, options, obj["metadata"])
        set_condition(obj.setdefault("status", {}), _DISRUPTED, backend.now())
        return obj

    one = Call(call.user, call.kind, call.namespace, call.name, "status")
    marked = await writes.change(backend, one, mark, trusted=True)
    if not options.resource_version:
        return options
    return replace(options, resource_version=str(marked.revision))


def _check_eviction(call: Call, options: DeletionOptions, meta: JsonObject) -> None:
    for wanted, name, shown, guess in (
        (options.uid, "uid", "UID", "deleted and then recreated"),
        (options.resource_version, "resourceVersion", "ResourceVersion", "modified"),
    ):
        if wanted and wanted != meta[name]:
            detail = (
                f"the {shown} in the precondition ({wanted}) does not match the {shown} in record "
                f"({meta[name]}). The object might have been {guess}"
            )
            raise conflict("", "Pod", call.name, detail)


def _covers(budget: StoreEntry, pod: StoreEntry) -> bool:
    selector = (budget.object().get("spec") or {}).get("selector")
    return selector is not None and matches_selector(selector, pod.labels)


async def _spend(backend: Backend, call: Call, budget: StoreEntry) -> None:
    kind = backend.catalog.stored(_BUDGETS)
    if kind is None:
        return
    name = budget.key.name
    one = Call(call.user, kind, call.namespace, name, "status", call.dry_run)

    def take(obj: JsonObject) -> JsonObject:
        status = obj.setdefault("status", {})
        _refuse_disruption(obj, status)
        status["disruptionsAllowed"] -= 1
        if not status["disruptionsAllowed"]:
            _set_exhausted(status, backend.now())
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), call.name: backend.now()}
        return obj

    await writes.change(backend, one, take, trusted=True)


def _refuse_disruption(budget: JsonObject, status: JsonObject) -> None:
    name, allowed = budget["metadata"]["name"], status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _busy(name)
    if allowed < 0:
        detail = "pdb disruptions allowed is negative"
        raise forbidden("policy", "poddisruptionbudget", name, detail)
    if len(status.get("disruptedPods") or ()) > _MAX_DISRUPTED:
        detail = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, detail)
    if allowed == 0:
        raise _refusal(f"The disruption budget {name} {_exhausted_reason(status)}")


def _allowance(status: JsonObject) -> JsonObject:
    """Return the budget's status as kube-apiserver words it."""
    for one in status.get("conditions") or ():
        if one.get("type") == "DisruptionAllowed":
            found: JsonObject = one
            return found
    return {}


def _exhausted_reason(status: JsonObject) -> str:
    """Return why a budget allows no disruption now."""
    one = _allowance(status)
    message = one.get("message") if one.get("status") == "False" else ""
    healthy, wanted = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    not_now = "does not allow evicting pods currently"
    if message and one.get("reason") == "SyncFailed":
        return f"{not_now} because it failed sync: {message}"
    if healthy <= wanted:
        return f"needs {wanted} healthy pods and has {healthy} currently"
    return f"{not_now} ({one.get('reason')}): {message}" if message else not_now


def _set_exhausted(status: JsonObject, now: str) -> None:
    """Set the budget's condition to exhausted, before its controller does."""
    before = _allowance(status)
    kept = [one for one in status.get("conditions") or () if one != before]
    since = before.get("lastTransitionTime") if before.get("status") == "False" else now
    spent: JsonObject = {"type": "DisruptionAllowed", "status": "False"}
    if status.get("observedGeneration"):
        spent["observedGeneration"] = status["observedGeneration"]
    spent |= {"lastTransitionTime": since, "reason": "InsufficientPods", "message": ""}
    status["conditions"] = [*kept, spent]


def _busy(name: str) -> StatusError:
    message = f"The disruption budget {name} is still being processed by the server."
    return _refusal(message, _RETRY_SECONDS)


def _refusal(detail: str, retry_after: int = 0) -> StatusError:
    """Return 429; with a retry time only if it is a matter of seconds."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {"reason": "DisruptionBudget", "message": detail}
    details: JsonObject = {"causes": [cause]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return StatusError(429, "TooManyRequests", message, details)
