"""Eviction: deleting a pod only if its disruption budget allows it.

Pods that do not run, or are going anyway, are nobody's disruption. A pod that runs but is not ready
does not help its budget either: `unhealthyPodEvictionPolicy` says whether it may go always
(AlwaysAllow), or only while enough others are healthy (IfHealthyBudget, the default). Neither
spends anything, so the pod is deleted only if it is still as it was when that was decided.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call, DeleteOptions
from bayplan.embedded.apiserver.rest import deleting, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.selectors import select
from bayplan.embedded.apiserver.store.entry import Entry

_BUDGETS = "poddisruptionbudgets.policy"
_RETRY_SECONDS = 10
_ATTEMPTS = 5
_MOST_DISRUPTED = 2000
"""Evictions that the disruption controller has not taken note of yet."""
_CONDITION = "DisruptionTarget"
_SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


class _Changed(Exception):  # noqa: N818 - an outcome that is handled here
    """The pod is no longer what it was when its eviction was decided."""


async def evict(backend: Backend, call: Call, options: DeleteOptions) -> None:
    """Delete a pod, or say that its budget does not allow it now (429)."""
    for _ in range(_ATTEMPTS):
        pod = backend.require(call)
        budget = None if _harmless(pod) else _budget(backend, call, pod)
        free = budget is None or _free(budget.object(), pod)
        if budget is not None and not free:
            await _spend(backend, call, budget)
        try:
            await _mark(backend, call, pod if free and not _over(pod) else None)
        except _Changed:
            continue
        inner = Call(call.user, call.kind, call.namespace, call.name, dry_run=call.dry_run)
        await deleting.delete(backend, inner, options)
        return
    raise _refusal(f"The pod {call.name} changes too often.", _RETRY_SECONDS)


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


async def _mark(backend: Backend, call: Call, judged: Entry | None) -> None:
    """Let the pod say why it goes; _Changed if it is not as it was judged."""
    if call.dry_run:
        return

    def mark(obj: JsonObject) -> JsonObject:
        if judged is not None and obj["metadata"]["resourceVersion"] != str(judged.revision):
            raise _Changed
        status = obj.setdefault("status", {})
        others = [one for one in status.get("conditions") or () if one["type"] != _CONDITION]
        status["conditions"] = [*others, _disrupted(backend.now())]
        return obj

    one = Call(call.user, call.kind, call.namespace, call.name, "status")
    await writing.change(backend, one, mark, trusted=True)


def _disrupted(now: str) -> JsonObject:
    return {
        "type": _CONDITION,
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": now,
    }


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
        if (status.get("observedGeneration") or 0) < (obj["metadata"].get("generation") or 0):
            said = f"The disruption budget {name} is still being processed by the server."
            raise _refusal(said, _RETRY_SECONDS)
        if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
            raise ApiError(403, "Forbidden", f"{name}: too many evictions are not confirmed yet")
        if (status.get("disruptionsAllowed") or 0) <= 0:
            healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
            raise _refusal(
                f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} "
                "currently"
            )
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[call.name] = backend.now()
        return obj

    await writing.change(backend, one, take, trusted=True)


def _refusal(why: str, retry_after: int = 0) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {"reason": "DisruptionBudget", "message": why}
    details: JsonObject = {"causes": [cause]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return ApiError(429, "TooManyRequests", message, details)
