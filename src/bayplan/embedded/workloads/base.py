"""Common parts of workload controllers: pods from templates, conditions, status."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone, encode
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Controller, ControllerContext, Edit, Plan, Update
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.view import PODS


def scaled(value: object, total: int, *, up: bool) -> int:
    """Return a count, or a percentage of a total rounded up or down; 0 if it is invalid."""
    if isinstance(value, int):
        return value
    text = str(value or "").removesuffix("%")
    if not text.isdigit():
        return 0
    share = int(text) * total / 100
    return math.ceil(share) if up else math.floor(share)


_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NAME_LIMIT = 253


def owner_reference(owner: JsonObject) -> JsonObject:
    """Return the controller owner reference of an owner."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(owner: JsonObject, **metadata: object) -> JsonObject:
    """Return a pod from an owner's template; `metadata` has its name."""
    template = clone(owner["spec"]["template"])
    meta = template.get("metadata") or {}
    kept = {
        field: meta[field] for field in ("labels", "annotations", "finalizers") if field in meta
    }
    return {
        "metadata": {
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [owner_reference(owner)],
            **kept,
            **metadata,
        },
        "spec": template["spec"],
    }


def template_hash(owner: JsonObject) -> str:
    """Return a short hash of an owner's template."""
    digest = hashlib.sha256(_canonical(owner["spec"]["template"])).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def generate_name(owner: JsonObject) -> str:
    """Return the `generateName` of an owner's children."""
    return f"{owner['metadata']['name']}-"[:_NAME_LIMIT]


def status_change(key: ObjectKey, owner: JsonObject, wanted: JsonObject) -> list[Update]:
    """Return the update of status fields, if any differs."""
    present = owner.get("status") or {}
    if all(present.get(name) == value for name, value in wanted.items()):
        return []
    return [Update(key, _with_status(wanted), "status")]


class ConditionUpdate(NamedTuple):
    """A condition to set."""

    type: str
    status: str
    reason: str
    message: str


def with_condition(
    conditions: list[JsonObject], wanted: ConditionUpdate, now: str
) -> list[JsonObject]:
    """Return the conditions with one of them set; its time changes only with its status."""
    old = next((one for one in conditions if one["type"] == wanted.type), None)
    since = now
    if old is not None and old["status"] == wanted.status:
        if old.get("reason") == wanted.reason:
            return conditions
        since = old["lastTransitionTime"]
    new = {**wanted._asdict(), "lastTransitionTime": since}
    return [one for one in conditions if one["type"] != wanted.type] + [new]


def conditions_of(owner: JsonObject) -> list[JsonObject]:
    """Return the conditions in an object's status."""
    return list((owner.get("status") or {}).get("conditions") or ())


def _with_status(wanted: JsonObject) -> Edit:
    def edit(obj: JsonObject) -> JsonObject:
        obj["status"] = {**(obj.get("status") or {}), **wanted}
        return obj

    return edit


def _canonical(value: object) -> bytes:
    """Return JSON with sorted keys, so that equal templates have equal hashes."""
    return encode(_ordered(value))


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


class WorkloadController(Controller[ObjectKey]):
    """A controller of one kind of workload; keyed by its object."""

    storage = ""
    children: tuple[str, ...] = (PODS,)

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return the object itself, or the controller of a changed child."""
        entry = change.entry
        if entry.key.storage == self.storage:
            return (entry.key,)
        owners = [*entry.owners, *(change.previous.owners if change.previous else ())]
        found = (self._view.store.by_uid(uid) for uid in dict.fromkeys(owners))
        return [one.key for one in found if one and one.key.storage == self.storage]

    def decide(self, key: ObjectKey) -> Plan:
        """Reconcile the workload, unless it is terminating."""
        owner = self._view.object(key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return self.on_deleted(key)
        return self.reconcile(key, owner)

    @abstractmethod
    def reconcile(self, key: ObjectKey, owner: JsonObject) -> Plan:
        """Return the next steps from the current to the wanted state."""

    def on_deleted(self, key: ObjectKey) -> Plan:  # noqa: ARG002 - for those that remember something
        """Handle a deleted or terminating workload; the garbage collector deletes its children."""
        return []

    def pods(self, owner: JsonObject) -> list[tuple[ObjectKey, PodFacts]]:
        """Return the pods of the workload, sorted."""
        return self._view.pods_of(owner["metadata"]["uid"])

    def is_available(self, pod: PodFacts, owner: JsonObject) -> bool:
        """Return whether a pod has been ready for minReadySeconds."""
        return is_available(pod, owner, self._context.seconds())

    def count_available(self, pods: Iterable[PodFacts], owner: JsonObject) -> int:
        """Return the number of available pods."""
        now = self._context.seconds()
        return sum(pod.is_ready and is_available(pod, owner, now) for pod in pods)


def is_available(pod: PodFacts, owner: JsonObject, now: float) -> bool:
    """Return whether a pod has been ready for minReadySeconds."""
    wanted = owner["spec"].get("minReadySeconds") or 0
    return pod.is_ready and (not wanted or now - moment(pod.ready_since) >= wanted)


def ordinal(name: str) -> int:
    """Return the number at the end of a name; -1 if there is none."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() and len(number) < 10 else -1
