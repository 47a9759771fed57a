"""What is wrong with config maps, secrets and namespaces."""

from __future__ import annotations

import base64
import binascii

from bayplan.embedded.apiserver.errors import Cause
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

MOST_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def config_map_problems(obj: JsonObject) -> list[Cause]:
    """What is wrong with a config map."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    found: list[Cause] = []
    for key in data:
        found += name_problems(config_key, key, f"data[{key}]")
        if key in binary:
            why = "duplicate of key present in binaryData"
            found.append(bad_value(f"data[{key}]", key, why))
    for key in binary:
        found += name_problems(config_key, key, f"binaryData[{key}]")
    size = sum(len(text.encode()) for text in data.values()) + _size(binary)
    return [*found, too_long("", MOST_BYTES)] if size > MOST_BYTES else found


def _size(data: JsonObject) -> int:
    """How many bytes stand in base64; null, too, says none."""
    texts = [text for text in data.values() if text]
    return sum(len(text) * 3 // 4 - text.endswith("=") - text.endswith("==") for text in texts)


def frozen_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What was said to stay stays."""
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden_field("immutable", _FROZEN)]
    return found + [
        forbidden_field(field, _FROZEN)
        for field in ("data", "binaryData")
        if (new.get(field) or {}) != (old.get(field) or {})
    ]


def secret_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What of a secret must stay as it was."""
    changed = new.get("type") != old.get("type")
    found = [immutable("type", new.get("type") or "")] if changed else []
    return found + frozen_problems(new, old)


def secret_problems(obj: JsonObject) -> list[Cause]:
    """What is wrong with a secret, of which nothing is ever shown."""
    data, found = obj.get("data") or {}, list[Cause]()
    for key in data:
        found += name_problems(config_key, key, f"data[{key}]")
    if _size(data) > MOST_BYTES:
        found.append(too_long("data", MOST_BYTES))
    return found + _type_problems(obj, data)


def _type_problems(obj: JsonObject, data: JsonObject) -> list[Cause]:
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


def _missing(data: JsonObject, keys: tuple[str, ...]) -> list[Cause]:
    return [required(f"data[{key}]") for key in keys if key not in data]


def _docker_problems(data: JsonObject, key: str) -> list[Cause]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        fine = isinstance(decode(base64.b64decode(data[key] or "")), dict)
    except (ValueError, RecursionError, binascii.Error):
        fine = False
    if fine:
        return []
    why = "unexpected end of JSON input" if not data[key] else "is not a JSON object"
    return [bad_value(f"data[{key}]", "<secret contents redacted>", why)]


def namespace_problems(obj: JsonObject) -> list[Cause]:
    """What is wrong with a namespace."""
    found: list[Cause] = []
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        found += finalizer_problems(name, "spec.finalizers")
    return found


def finalizer_problems(name: str, field: str) -> list[Cause]:
    """What is wrong with a finalizer: it is one of a few, or has a domain."""
    return name_problems(qualified_name, name, field) + plain_finalizer_problems(name, field)


def plain_finalizer_problems(name: str, field: str) -> list[Cause]:
    """A finalizer without a domain is one of a few."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [bad_value(field, name, why)]


def namespace_status_problems(new: JsonObject, _: JsonObject) -> list[Cause]:
    """A namespace is active until it is deleted, and is ending from then on."""
    going, phase = "deletionTimestamp" in new["metadata"], (new.get("status") or {}).get("phase")
    if going and phase != "Terminating":
        why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
    elif not going and phase != "Active":
        why = "may only be 'Active' if `deletionTimestamp` is empty"
    else:
        return []
    return [bad_value("status.Phase", phase or "", why)]
