"""Subresources that are more than a part of their object: binding, scale and eviction.

Pods that do not run, or are going anyway, are nobody's disruption. A pod that runs but is not ready
does not help its budget either: `unhealthyPodEvictionPolicy` says whether it may go always
(AlwaysAllow), or only while enough others are healthy (IfHealthyBudget, the default). Neither
spends anything, so the pod is deleted only if it is still as it was when that was decided.
"""

from __future__ import annotations

from dataclasses import replace

from bayplan.embedded.apiserver.errors import (
    ApiError,
    Cause,
    conflict,
    failed_precondition,
    forbidden,
    invalid,
    modified,
)
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.catalog import value_at
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.request import Call, DeleteOptions
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.selectors import select
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.strategies.pods import set_condition
from bayplan.embedded.apiserver.validation.causes import bad_value, not_supported, required


async def bind(backend: Backend, call: Call, binding: JsonObject) -> Entry:
    """Give a pod to a node; 409 if it is gated, going, or already somewhere."""
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


def _check_binding(call: Call, pod: JsonObject, meta: JsonObject) -> None:
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


_BUILTIN = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}


def _paths(kind: Kind) -> dict[str, str]:
    return (kind.custom.scale if kind.custom is not None else None) or _BUILTIN


def scale_of(kind: Kind, obj: JsonObject) -> JsonObject:
    """The scale of a workload."""
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


def with_scale(kind: Kind, obj: JsonObject, scale: JsonObject) -> JsonObject:
    """The workload with the wanted number of replicas."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if type(replicas) is not int or not 0 <= replicas < 2**31:
        why = "must be greater than or equal to 0"
        problem = bad_value("spec.replicas", replicas, why)
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
_MOST_DISRUPTED = 2000
"""Evictions that the disruption controller has not taken note of yet."""
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


async def evict(backend: Backend, call: Call, options: DeleteOptions) -> None:
    """Delete a pod, or say that its budget does not allow it now (429)."""
    for attempt in range(_ATTEMPTS):
        pod = backend.require(call)
        if not _harmless(pod):
            return await _evict_guarded(backend, call, options, pod)
        try:
            return await _mark_and_delete(
                backend, call, options if _over(pod) else _as_it_is(options, pod)
            )
        except ApiError as problem:
            again = problem.code == 409 and not options.resource_version
            if not again or attempt == _ATTEMPTS - 1:
                raise
    raise modified("", "pods", call.name)


async def _evict_guarded(backend: Backend, call: Call, options: DeleteOptions, pod: Entry) -> None:
    budget = _budget(backend, call, pod)
    if budget is None or not _free(budget.object(), pod):
        if budget is not None:
            await _spend(backend, call, budget)
        return await _mark_and_delete(backend, call, options)
    try:
        return await _mark_and_delete(backend, call, _as_it_is(options, pod))
    except ApiError as problem:
        if problem.code == 409 and not options.resource_version:
            raise _busy(budget.key.name) from problem
        raise


def _as_it_is(options: DeleteOptions, pod: Entry) -> DeleteOptions:
    """The same deletion, but only of the pod as it was judged."""
    if options.resource_version:
        return options
    return replace(options, resource_version=str(pod.revision))


def _over(pod: Entry) -> bool:
    """Whether a pod has ended or is going: it will not become ready any more."""
    return pod.deleting or pod.fields.get("status.phase", "") in ("Succeeded", "Failed")


def _harmless(pod: Entry) -> bool:
    return _over(pod) or pod.fields.get("status.phase", "") == "Pending"


def _budget(backend: Backend, call: Call, pod: Entry) -> Entry | None:
    """The budget that guards a pod, if there is one."""
    found = [one for one in backend.store.list(_BUDGETS, call.namespace) if _covers(one, pod)]
    if len(found) > 1:
        raise ApiError(500, "", _SEVERAL)
    return found[0] if found else None


def _free(budget: JsonObject, pod: Entry) -> bool:
    """Whether a pod may go without being counted: it is not healthy, and the policy lets it."""
    if _ready(pod.object()):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy") or 0
    return 0 < wanted <= (status.get("currentHealthy") or 0)


def _ready(pod: JsonObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


async def _mark_and_delete(backend: Backend, call: Call, options: DeleteOptions) -> None:
    """Let the pod say why it goes, and delete it."""
    if not call.dry_run:
        options = await _mark(backend, call, options)
    inner = Call(call.user, call.kind, call.namespace, call.name, dry_run=call.dry_run)
    await deletion.delete(backend, inner, options)


async def _mark(backend: Backend, call: Call, options: DeleteOptions) -> DeleteOptions:
    def mark(obj: JsonObject) -> JsonObject:
        _check_eviction(call, options, obj["metadata"])
        set_condition(obj.setdefault("status", {}), _DISRUPTED, backend.now())
        return obj

    one = Call(call.user, call.kind, call.namespace, call.name, "status")
    marked = await writes.change(backend, one, mark, trusted=True)
    if not options.resource_version:
        return options
    return replace(options, resource_version=str(marked.revision))


def _check_eviction(call: Call, options: DeleteOptions, meta: JsonObject) -> None:
    for wanted, name, shown, guess in (
        (options.uid, "uid", "UID", "deleted and then recreated"),
        (options.resource_version, "resourceVersion", "ResourceVersion", "modified"),
    ):
        if wanted and wanted != meta[name]:
            why = (
                f"the {shown} in the precondition ({wanted}) does not match the {shown} in record "
                f"({meta[name]}). The object might have been {guess}"
            )
            raise conflict("", "Pod", call.name, why)


def _covers(budget: Entry, pod: Entry) -> bool:
    selector = (budget.object().get("spec") or {}).get("selector")
    return selector is not None and select(selector, pod.labels)


async def _spend(backend: Backend, call: Call, budget: Entry) -> None:
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
            _say_spent(status, backend.now())
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), call.name: backend.now()}
        return obj

    await writes.change(backend, one, take, trusted=True)


def _refuse_disruption(budget: JsonObject, status: JsonObject) -> None:
    name, allowed = budget["metadata"]["name"], status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _busy(name)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if allowed == 0:
        raise _refusal(f"The disruption budget {name} {_spent(status)}")


def _allowance(status: JsonObject) -> JsonObject:
    """What a budget says of whether it allows anything."""
    for one in status.get("conditions") or ():
        if one.get("type") == "DisruptionAllowed":
            found: JsonObject = one
            return found
    return {}


def _spent(status: JsonObject) -> str:
    """Why a budget allows nothing now."""
    one = _allowance(status)
    said = one.get("message") if one.get("status") == "False" else ""
    healthy, wanted = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    not_now = "does not allow evicting pods currently"
    if said and one.get("reason") == "SyncFailed":
        return f"{not_now} because it failed sync: {said}"
    if healthy <= wanted:
        return f"needs {wanted} healthy pods and has {healthy} currently"
    return f"{not_now} ({one.get('reason')}): {said}" if said else not_now


def _say_spent(status: JsonObject, now: str) -> None:
    """Let the budget itself say that it is spent, before its controller does."""
    before = _allowance(status)
    kept = [one for one in status.get("conditions") or () if one != before]
    since = before.get("lastTransitionTime") if before.get("status") == "False" else now
    spent: JsonObject = {"type": "DisruptionAllowed", "status": "False"}
    if status.get("observedGeneration"):
        spent["observedGeneration"] = status["observedGeneration"]
    spent |= {"lastTransitionTime": since, "reason": "InsufficientPods", "message": ""}
    status["conditions"] = [*kept, spent]


def _busy(name: str) -> ApiError:
    said = f"The disruption budget {name} is still being processed by the server."
    return _refusal(said, _RETRY_SECONDS)


def _refusal(why: str, retry_after: int = 0) -> ApiError:
    """A refusal; it says when to come again only if that is a matter of seconds."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {"reason": "DisruptionBudget", "message": why}
    details: JsonObject = {"causes": [cause]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return ApiError(429, "TooManyRequests", message, details)
