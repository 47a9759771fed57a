"""Eviction: deleting a pod only if its disruption budget allows it.

Pods that do not run, or are going anyway, are nobody's disruption. A pod that runs but is not ready
does not help its budget either: `unhealthyPodEvictionPolicy` says whether it may go always
(AlwaysAllow), or only while enough others are healthy (IfHealthyBudget, the default). Neither
spends anything, so the pod is deleted only if it is still as it was when that was decided.
"""

from __future__ import annotations

from dataclasses import replace

from bayplan.embedded.apiserver.errors import ApiError, conflict, forbidden, modified
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call, DeleteOptions
from bayplan.embedded.apiserver.rest import deleting, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.selectors import select
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.strategies.podstatus import set_condition

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
    await deleting.delete(backend, inner, options)


async def _mark(backend: Backend, call: Call, options: DeleteOptions) -> DeleteOptions:
    def mark(obj: JsonObject) -> JsonObject:
        _check(call, options, obj["metadata"])
        set_condition(obj.setdefault("status", {}), _DISRUPTED, backend.now())
        return obj

    one = Call(call.user, call.kind, call.namespace, call.name, "status")
    marked = await writing.change(backend, one, mark, trusted=True)
    if not options.resource_version:
        return options
    return replace(options, resource_version=str(marked.revision))


def _check(call: Call, options: DeleteOptions, meta: JsonObject) -> None:
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

    await writing.change(backend, one, take, trusted=True)


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
