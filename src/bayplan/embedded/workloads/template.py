"""Pods and other children made from templates, and what marks them as an owner's."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone, encode
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Edit, Update

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
