"""Validation of config maps, secrets and namespaces."""

from __future__ import annotations

import base64
import binascii

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    immutable,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import (
    config_key,
    name_problems,
    qualified_name,
)

MAX_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def config_map_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a config map."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    found: list[FieldCause] = []
    for key in data:
        found += name_problems(config_key, key, f"data[{key}]")
        if key in binary:
            detail = "duplicate of key present in binaryData"
            found.append(bad_value(f"data[{key}]", key, detail))
    for key in binary:
        found += name_problems(config_key, key, f"binaryData[{key}]")
    size = sum(len(text.encode()) for text in data.values()) + _size(binary)
    return [*found, too_long("", MAX_BYTES)] if size > MAX_BYTES else found


def _size(data: JsonObject) -> int:
    """Return the decoded size of base64 data; null is empty."""
    texts = [text for text in data.values() if text]
    return sum(len(text) * 3 // 4 - text.endswith("=") - text.endswith("==") for text in texts)


def frozen_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of an immutable config map or secret."""
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden_field("immutable", _FROZEN)]
    return found + [
        forbidden_field(field, _FROZEN)
        for field in ("data", "binaryData")
        if (new.get(field) or {}) != (old.get(field) or {})
    ]


def secret_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a secret: immutable fields."""
    changed = new.get("type") != old.get("type")
    found = [immutable("type", new.get("type") or "")] if changed else []
    return found + frozen_problems(new, old)


def secret_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a secret, without its values."""
    data, found = obj.get("data") or {}, list[FieldCause]()
    for key in data:
        found += name_problems(config_key, key, f"data[{key}]")
    if _size(data) > MAX_BYTES:
        found.append(too_long("data", MAX_BYTES))
    return found + _type_problems(obj, data)


def _type_problems(obj: JsonObject, data: JsonObject) -> list[FieldCause]:
    type_ = obj.get("type") or ""
    if type_ in _DOCKER:
        return _docker_problems(data, _DOCKER[type_])
    if type_ == "kubernetes.io/service-account-token":
        named = (obj["metadata"].get("annotations") or {}).get(_ACCOUNT)
        return [] if named else [required(f"metadata.annotations[{_ACCOUNT}]")]
    if type_ == "kubernetes.io/basic-auth":
        keys = ("username", "password")
        return [] if any(key in data for key in keys) else _missing({}, keys)
    if type_ == "kubernetes.io/ssh-auth":
        return [] if data.get("ssh-privatekey") else _missing({}, ("ssh-privatekey",))
    return _missing(data, ("tls.crt", "tls.key")) if type_ == "kubernetes.io/tls" else []


def _missing(data: JsonObject, keys: tuple[str, ...]) -> list[FieldCause]:
    return [required(f"data[{key}]") for key in keys if key not in data]


def _docker_problems(data: JsonObject, key: str) -> list[FieldCause]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        fine = isinstance(decode(base64.b64decode(data[key] or "")), dict)
    except (ValueError, RecursionError, binascii.Error):
        fine = False
    if fine:
        return []
    detail = "unexpected end of JSON input" if not data[key] else "is not a JSON object"
    return [bad_value(f"data[{key}]", "<secret contents redacted>", detail)]


def namespace_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a namespace."""
    found: list[FieldCause] = []
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        found += finalizer_problems(name, "spec.finalizers")
    return found


def finalizer_problems(name: str, field: str) -> list[FieldCause]:
    """Return the problems of a finalizer: a standard one, or domain-qualified."""
    return name_problems(qualified_name, name, field) + plain_finalizer_problems(name, field)


def plain_finalizer_problems(name: str, field: str) -> list[FieldCause]:
    """Return the problems of a finalizer without a domain: only standard ones are valid."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [bad_value(field, name, detail)]


def namespace_status_problems(new: JsonObject, _: JsonObject) -> list[FieldCause]:
    """Return the problems of a namespace's phase."""
    going, phase = "deletionTimestamp" in new["metadata"], (new.get("status") or {}).get("phase")
    if going and phase != "Terminating":
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
    elif not going and phase != "Active":
        detail = "may only be 'Active' if `deletionTimestamp` is empty"
    else:
        return []
    return [bad_value("status.Phase", phase or "", detail)]
