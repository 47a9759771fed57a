"""Eviction: deleting a pod only if its disruption budget allows it."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest import deleting, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.objectselectors import select
from bayplan.embedded.apiserver.rest.request import Call, DeleteOptions
from bayplan.embedded.apiserver.store.entry import Entry

_BUDGETS = "poddisruptionbudgets.policy"
_RETRY_SECONDS = 10


async def evict(backend: Backend, call: Call, options: DeleteOptions) -> None:
    """Delete a pod, or say that its budget does not allow it now (429)."""
    pod = backend.require(call)
    if _counts(pod):
        budgets = [b for b in backend.store.list(_BUDGETS, call.namespace) if _covers(b, pod)]
        if len(budgets) > 1:
            raise ApiError(
                422,
                "Invalid",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support.",
            )
        for budget in budgets:
            await _spend(backend, call, budget)
    inner = Call(call.user, call.kind, call.namespace, call.name, dry_run=call.dry_run)
    await deleting.delete(backend, inner, options)


def _counts(pod: Entry) -> bool:
    """Pods that do not run, or are going anyway, are nobody's disruption."""
    phase = pod.fields.get("status.phase", "")
    return phase not in ("Succeeded", "Failed", "Pending") and not pod.deleting


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
            raise _refusal(f"The disruption budget {name} is still being processed by the server.")
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


def _refusal(why: str) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {"reason": "DisruptionBudget", "message": why}
    details = {"causes": [cause], "retryAfterSeconds": _RETRY_SECONDS}
    return ApiError(429, "TooManyRequests", message, details)
