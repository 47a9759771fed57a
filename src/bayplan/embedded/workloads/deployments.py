"""Deployments and ReplicaSets: one set for each template revision, rolled from old to new.

RollingUpdate: the new set grows as far as `maxSurge` allows, the old ones shrink as far as enough
pods stay available; unhealthy old pods are removed first. Recreate: all old pods are deleted before
new ones are created.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Create, Delete, Edit, Plan, RequeueAfter, Update
from bayplan.embedded.control.facts import TERMINAL, PodFacts
from bayplan.embedded.control.view import DEPLOYMENTS, PODS, REPLICA_SETS
from bayplan.embedded.workloads.base import (
    ConditionUpdate,
    WorkloadController,
    conditions_of,
    generate_name,
    owner_reference,
    pod_from,
    scaled,
    status_change,
    template_hash,
    with_condition,
)

BURST = 500
"""Pods created or deleted in one step; the rest follows after other keys."""


class ReplicaSets(WorkloadController):
    """The ReplicaSet controller; keyed by ReplicaSet."""

    name = "replicaset-controller"
    storage = REPLICA_SETS
    storages = (REPLICA_SETS, PODS)

    def reconcile(self, key: ObjectKey, owner: JsonObject) -> Plan:
        """Create or delete pods, and count them."""
        pods = self.pods(owner)
        active = [(one, pod) for one, pod in pods if pod.is_active]
        missing = (owner["spec"].get("replicas") or 0) - len(active)
        plan: Plan = []
        if missing > 0:
            name = {"generateName": generate_name(owner)}
            plan += [Create(PODS, pod_from(owner, **name)) for _ in range(min(missing, BURST))]
        elif missing < 0:
            victims = sorted(active, key=deletion_order)[: min(-missing, BURST)]
            plan += [Delete(one, pod.uid) for one, pod in victims]
        return plan + self._count(key, owner, [pod for _, pod in active])

    def _count(self, key: ObjectKey, owner: JsonObject, active: list[PodFacts]) -> Plan:
        ready = sum(pod.is_ready for pod in active)
        available = self.count_available(active, owner)
        wanted = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": available,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        plan: Plan = [*status_change(key, owner, wanted)]
        if available < ready:
            plan.append(RequeueAfter(1.0))
        return plan


def deletion_order(item: tuple[ObjectKey, PodFacts]) -> tuple[bool, bool, bool, int, ObjectKey]:
    """Return the sort key of pods in the order of deletion."""
    key, pod = item
    age = "".join(char for char in pod.metadata.creation_timestamp if char.isdigit())
    return bool(pod.node), pod.phase == "Running", pod.is_ready, -int(age or 0), key


REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"


class Deployments(WorkloadController):
    """The Deployment controller; keyed by Deployment."""

    name = "deployment-controller"
    storage = DEPLOYMENTS
    storages = (DEPLOYMENTS, REPLICA_SETS, PODS)

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return also the Deployments of terminal pods: Recreate waits for the last one."""
        if change.entry.key.storage != PODS:
            return super().notice(change)
        if not change.deleted and change.entry.fields.get("status.phase") not in TERMINAL:
            return ()
        sets = [self._view.store.by_uid(uid) for uid in change.entry.owners]
        owners = [self._view.store.by_uid(uid) for one in sets if one for uid in one.owners]
        return [one.key for one in owners if one and one.key.storage == DEPLOYMENTS]

    def reconcile(self, key: ObjectKey, owner: JsonObject) -> Plan:
        """Create the new ReplicaSet, scale all sets, and count."""
        sets = self._sets(owner)
        name = f"{key.name}-{template_hash(owner)}"
        new = next((one for one in sets if one["metadata"]["name"] == name), None)
        old = [one for one in sets if one is not new]
        plan: Plan = []
        if new is None:
            plan.append(Create(REPLICA_SETS, _replica_set(owner, sets, name)))
        elif not owner["spec"].get("paused"):
            plan += self._promote(new, old) + self._roll(owner, new, old)
        return plan + self._clean_up(owner, old) + self._count(key, owner, new, sets)

    def _sets(self, owner: JsonObject) -> list[JsonObject]:
        uid = owner["metadata"]["uid"]
        found = [
            self._view.object(entry.key)
            for entry in self._view.store.dependents(uid)
            if entry.key.storage == REPLICA_SETS and not entry.is_terminating
        ]
        return [one for one in found if one is not None]

    def _promote(self, new: JsonObject, old: list[JsonObject]) -> Plan:
        """Set the newest revision on a ReplicaSet whose template is used again."""
        newest = max((_revision(one) for one in old), default=0)
        if _revision(new) > newest:
            return []
        return [Update(_key(new), _with_revision(newest + 1))]

    def _roll(self, owner: JsonObject, new: JsonObject, old: list[JsonObject]) -> Plan:
        wanted = owner["spec"].get("replicas") or 0
        strategy = owner["spec"].get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return self._recreate(wanted, new, old)
        limits = strategy.get("rollingUpdate") or {}
        surge = scaled(limits.get("maxSurge"), wanted, up=True)
        missing = scaled(limits.get("maxUnavailable"), wanted, up=False)
        if surge == 0 and missing == 0:
            missing = 1
        total = sum(_replicas(one) for one in old)
        size = min(wanted, max(_replicas(new), wanted + surge - total)) if total else wanted
        plan = _scale(new, size)
        available = sum(_available(one) for one in (new, *old))
        spare = available - max(0, wanted - missing)
        return plan + _shrink(old, spare)

    def _recreate(self, wanted: int, new: JsonObject, old: list[JsonObject]) -> Plan:
        plan = [step for one in old for step in _scale(one, 0)]
        pods = [pod for one in old for _, pod in self._view.pods_of(one["metadata"]["uid"])]
        left = any(not pod.is_terminal for pod in pods)
        return plan if left else plan + _scale(new, wanted)

    def _clean_up(self, owner: JsonObject, old: list[JsonObject]) -> Plan:
        limit = owner["spec"].get("revisionHistoryLimit")
        idle = [one for one in old if not _replicas(one) and not _present(one)]
        surplus = len(idle) - (10 if limit is None else limit)
        idle.sort(key=_revision)
        return [Delete(_key(one), one["metadata"]["uid"]) for one in idle[: max(0, surplus)]]

    def _count(
        self, key: ObjectKey, owner: JsonObject, new: JsonObject | None, sets: list[JsonObject]
    ) -> Plan:
        wanted = owner["spec"].get("replicas") or 0
        present = sum(_present(one) for one in sets)
        available = sum(_available(one) for one in sets)
        updated = _present(new) if new is not None else 0
        limits = (owner["spec"].get("strategy") or {}).get("rollingUpdate") or {}
        least = wanted - scaled(limits.get("maxUnavailable"), wanted, up=False)
        done = updated == wanted == available == present
        status = {
            "replicas": present,
            "updatedReplicas": updated,
            "readyReplicas": sum((one.get("status") or {}).get("readyReplicas", 0) for one in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
            "observedGeneration": owner["metadata"].get("generation", 1),
            "conditions": self._conditions(owner, available >= least, done),
        }
        return [*status_change(key, owner, status)]

    def _conditions(self, owner: JsonObject, available: bool, done: bool) -> list[JsonObject]:
        now = self._context.now()
        reason = "MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable"
        message = f"Deployment {'has' if available else 'does not have'} minimum availability."
        availability = ConditionUpdate("Available", str(available), reason, message)
        progress = "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
        progressing = ConditionUpdate("Progressing", "True", progress, "ReplicaSet progresses.")
        found = with_condition(conditions_of(owner), availability, now)
        return with_condition(found, progressing, now)


def _replica_set(owner: JsonObject, sets: list[JsonObject], name: str) -> JsonObject:
    digest = template_hash(owner)
    template = clone(owner["spec"]["template"])
    labels = {**(template["metadata"].get("labels") or {}), HASH: digest}
    template["metadata"]["labels"] = labels
    selector = clone(owner["spec"]["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: digest}
    revision = str(max((_revision(one) for one in sets), default=0) + 1)
    return {
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
            "annotations": {REVISION: revision},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "replicas": 0,
            "selector": selector,
            "template": template,
            "minReadySeconds": owner["spec"].get("minReadySeconds") or 0,
        },
    }


def _shrink(old: list[JsonObject], spare: int) -> Plan:
    """Scale down old sets by a number of pods, unavailable ones first."""
    plan: Plan = []
    sizes = {one["metadata"]["name"]: _replicas(one) for one in old}
    for one in sorted(old, key=_revision):
        unwell = max(0, _replicas(one) - _available(one))
        sizes[one["metadata"]["name"]] -= min(unwell, _replicas(one))
    for one in sorted(old, key=_revision):
        taken = min(max(0, spare), sizes[one["metadata"]["name"]])
        spare -= taken
        sizes[one["metadata"]["name"]] -= taken
        plan += _scale(one, sizes[one["metadata"]["name"]])
    return plan


def _scale(one: JsonObject, size: int) -> Plan:
    if _replicas(one) == size:
        return []

    def edit(obj: JsonObject) -> JsonObject:
        obj["spec"]["replicas"] = size
        return obj

    return [Update(_key(one), edit)]


def _with_revision(revision: int) -> Edit:
    def edit(obj: JsonObject) -> JsonObject:
        obj["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
        return obj

    return edit


def _key(one: JsonObject) -> ObjectKey:
    return ObjectKey(REPLICA_SETS, one["metadata"]["namespace"], one["metadata"]["name"])


def _replicas(one: JsonObject) -> int:
    return int(one["spec"].get("replicas") or 0)


def _present(one: JsonObject) -> int:
    return int((one.get("status") or {}).get("replicas") or 0)


def _available(one: JsonObject) -> int:
    """Return the available pods; at most the replicas, since counts may be outdated."""
    return min(int((one.get("status") or {}).get("availableReplicas") or 0), _replicas(one))


def _revision(one: JsonObject) -> int:
    text = (one["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0
