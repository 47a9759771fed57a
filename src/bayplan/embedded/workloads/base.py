"""What controllers of workloads have in common: children made from templates, and their news."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone, encode
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Edit, Plan, Stage, Update
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.view import PODS


def scaled(value: object, total: int, *, up: bool) -> int:
    """A count, or a percentage of a total rounded up or down; what cannot be read is 0."""
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
    """How a child names the owner that manages it."""
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
    """A pod from an owner's template; `metadata` says its name."""
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
    """A short name for what an owner's template says now."""
    digest = hashlib.sha256(_canonical(owner["spec"]["template"])).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def generate_name(owner: JsonObject) -> str:
    """The beginning of the names of an owner's children."""
    return f"{owner['metadata']['name']}-"[:_NAME_LIMIT]


def status_change(key: Key, owner: JsonObject, wanted: JsonObject) -> list[Update]:
    """Write fields of a status, if any is different."""
    present = owner.get("status") or {}
    if all(present.get(name) == value for name, value in wanted.items()):
        return []
    return [Update(key, _with_status(wanted), "status")]


class Condition(NamedTuple):
    """A condition that a controller wants to set."""

    type: str
    status: str
    reason: str
    message: str


def with_condition(conditions: list[JsonObject], wanted: Condition, now: str) -> list[JsonObject]:
    """The conditions with one of them set; its time stays if its status does."""
    old = next((one for one in conditions if one["type"] == wanted.type), None)
    since = now
    if old is not None and old["status"] == wanted.status:
        if old.get("reason") == wanted.reason:
            return conditions
        since = old["lastTransitionTime"]
    new = {**wanted._asdict(), "lastTransitionTime": since}
    return [one for one in conditions if one["type"] != wanted.type] + [new]


def conditions_of(owner: JsonObject) -> list[JsonObject]:
    """The conditions in an object's status."""
    return list((owner.get("status") or {}).get("conditions") or ())


def _with_status(wanted: JsonObject) -> Edit:
    def edit(obj: JsonObject) -> JsonObject:
        obj["status"] = {**(obj.get("status") or {}), **wanted}
        return obj

    return edit


def _canonical(value: object) -> bytes:
    """JSON with sorted keys, so that equal templates have equal hashes."""
    return encode(_ordered(value))


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


class Workload(Controller[Key]):
    """A controller of one kind of workload; keyed by its object."""

    storage = ""
    children: tuple[str, ...] = (PODS,)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._view = stage.view

    def notice(self, change: Change) -> Iterable[Key]:
        """The object itself, or the one that owns a child."""
        entry = change.entry
        if entry.key.storage == self.storage:
            return (entry.key,)
        owners = [*entry.owners, *(change.previous.owners if change.previous else ())]
        found = (self._view.store.by_uid(uid) for uid in dict.fromkeys(owners))
        return [one.key for one in found if one and one.key.storage == self.storage]

    def decide(self, key: Key) -> Plan:
        """What to do about the workload, unless it is going."""
        owner = self._view.object(key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return self.let_go(key)
        return self.reconcile(key, owner)

    @abstractmethod
    def reconcile(self, key: Key, owner: JsonObject) -> Plan:
        """Bring what there is closer to what is wanted."""

    def let_go(self, key: Key) -> Plan:  # noqa: ARG002 - for those that remember something
        """The workload is gone, or going; the garbage collector takes its children."""
        return []

    def pods(self, owner: JsonObject) -> list[tuple[Key, PodFacts]]:
        """The pods that the workload manages, in order."""
        return self._view.pods_of(owner["metadata"]["uid"])

    def available(self, pod: PodFacts, owner: JsonObject) -> bool:
        """Whether a pod has been ready for as long as the workload wants."""
        return available(pod, owner, self._stage.seconds())

    def count_available(self, pods: Iterable[PodFacts], owner: JsonObject) -> int:
        """How many of these pods have been ready for as long as the workload wants."""
        now = self._stage.seconds()
        return sum(pod.ready and available(pod, owner, now) for pod in pods)


def available(pod: PodFacts, owner: JsonObject, now: float) -> bool:
    """Whether a pod has been ready for as long as its workload wants."""
    wanted = owner["spec"].get("minReadySeconds") or 0
    return pod.ready and (not wanted or now - moment(pod.ready_since) >= wanted)


def ordinal(name: str) -> int:
    """The number at the end of a name; -1 if there is none."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() and len(number) < 10 else -1
