"""The disruption controller: counts of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.selectors import matches_selector
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Controller, ControllerContext, Plan, RequeueAfter
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.view import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
)
from bayplan.embedded.workloads.base import (
    ConditionUpdate,
    conditions_of,
    scaled,
    status_change,
    with_condition,
)

FORGET_SECONDS = 120.0
"""How long an eviction that the server granted counts as in progress."""
_TYPE = "DisruptionAllowed"


class NotScalable(Exception):  # noqa: N818 - an outcome that is handled here
    """The expected number of pods is unknown."""


class Budgets(Controller[ObjectKey]):
    """The disruption controller; keyed by budget."""

    name = "disruption-controller"
    storages = (BUDGETS, PODS)

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return budgets, and those that select a changed pod."""
        entry = change.entry
        if entry.key.storage == BUDGETS:
            return () if change.deleted else (entry.key,)
        budgets = self._view.store.list(BUDGETS, entry.key.namespace)
        if not budgets:
            return ()
        return [one.key for one in budgets if self._selects(one.key, entry.labels)]

    def _selects(self, key: ObjectKey, labels: dict[str, str]) -> bool:
        budget = self._view.object(key)
        selector = budget["spec"].get("selector") if budget is not None else None
        return selector is not None and matches_selector(selector, labels)

    def decide(self, key: ObjectKey) -> Plan:
        """Count the healthy pods and the allowed disruptions."""
        budget = self._view.object(key)
        if budget is None:
            return []
        selector = budget["spec"].get("selector")
        pods = [
            (one, pod)
            for one, pod in self._view.pods_in(key.namespace)
            if selector is not None and matches_selector(selector, pod.metadata.labels or {})
        ]
        going, wait = self._pending_evictions(budget)
        status = self._status(
            budget, [(one, pod) for one, pod in pods if not pod.is_terminal], going
        )
        return [*status_change(key, budget, status), *wait]

    def _status(
        self, budget: JsonObject, pods: list[tuple[ObjectKey, PodFacts]], going: JsonObject
    ) -> JsonObject:
        try:
            expected, desired = self._wanted(budget["spec"], [pod for _, pod in pods])
        except NotScalable as problem:
            failed = ConditionUpdate(_TYPE, "False", "SyncFailed", str(problem))
            return {"disruptionsAllowed": 0, "conditions": self._conditions(budget, failed)}
        present = {key.name for key, pod in pods if not pod.is_terminating}
        going = {name: since for name, since in going.items() if name in present}
        healthy = sum(
            pod.is_ready and not pod.is_terminating and key.name not in going for key, pod in pods
        )
        allowed = max(0, healthy - desired) if expected else 0
        reason = "SufficientPods" if allowed else "InsufficientPods"
        return {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": budget["metadata"].get("generation", 1),
            "disruptedPods": going,
            "conditions": self._conditions(
                budget, ConditionUpdate(_TYPE, str(allowed > 0), reason, "")
            ),
        }

    def _wanted(self, spec: JsonObject, pods: list[PodFacts]) -> tuple[int, int]:
        """Return the expected number of pods, and how many of them must be healthy."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if isinstance(least, int):
            return len(pods), least
        expected = self._expected(pods)
        if most is not None:
            return expected, max(0, expected - scaled(most, expected, up=True))
        return expected, scaled(least, expected, up=True)

    def _expected(self, pods: list[PodFacts]) -> int:
        """Return the sum of replicas of the pods' controllers; pods without one do not count."""
        owners = {pod.controller.uid for pod in pods if pod.controller is not None}
        return sum(dict(self._scale(uid) for uid in sorted(owners)).values())

    def _scale(self, uid: str) -> tuple[str, int]:
        """Return the scalable controller of a UID, and its replicas."""
        entry = self._view.store.by_uid(uid)
        owner = self._view.object(entry.key) if entry is not None else None
        if entry is None or owner is None:
            return uid, 0
        if entry.key.storage == REPLICA_SETS:
            for parent in entry.owners:
                found = self._view.store.by_uid(parent)
                if found is not None and found.key.storage == DEPLOYMENTS:
                    return self._scale(parent)
        if entry.key.storage in (JOBS, DAEMON_SETS):
            raise NotScalable(f"{entry.key.storage} does not implement the scale subresource")
        replicas = owner["spec"].get("replicas")
        return uid, replicas if isinstance(replicas, int) else 1

    def _pending_evictions(self, budget: JsonObject) -> tuple[JsonObject, Plan]:
        disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
        now = self._context.seconds()
        recent = {n: t for n, t in disrupted.items() if now < moment(t) + FORGET_SECONDS}
        return recent, [RequeueAfter(FORGET_SECONDS)] if recent else []

    def _conditions(self, budget: JsonObject, wanted: ConditionUpdate) -> list[JsonObject]:
        generation = budget["metadata"].get("generation", 1)
        before = conditions_of(budget)
        return [
            one if one in before else {**one, "observedGeneration": generation}
            for one in with_condition(before, wanted, self._context.now())
        ]
