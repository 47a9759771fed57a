"""Validation of pod annotations: old forms of fields, mirror pods, deletion costs."""

from __future__ import annotations

import re

import msgspec

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, quoted
from bayplan.embedded.apiserver.validation.names import descending_problems
from bayplan.embedded.apiserver.validation.pods.choices import containers_of
from bayplan.embedded.apiserver.validation.pods.scheduling import toleration_problems
from bayplan.embedded.apiserver.validation.pods.security import app_armor_problems

MIRROR = "kubernetes.io/config.mirror"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_WHOLE = re.compile(r"-?[0-9]+")
_DEFAULTS = ("runtime/default", "docker/default")


def annotation_meanings_problems(
    annotations: JsonObject, spec: JsonObject, at: str
) -> list[FieldCause]:
    """Return the problems of annotations that Kubernetes interprets."""
    found: list[FieldCause] = []
    if not annotations:
        return found
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        found.append(bad_value(f"{at}[{MIRROR}]", annotations[MIRROR], detail))
    if annotations.get(_TOLERATIONS):
        found += _toleration_problems(annotations[_TOLERATIONS], at)
    if not _is_cost(annotations.get(_COST, "0")):
        found.append(bad_value(f"{at}[{_COST}]", annotations[_COST], "must be a 32bit integer"))
    for key, value in annotations.items():
        if key == SECCOMP or key.startswith(SECCOMP_OF_CONTAINER):
            found += _seccomp_problems(value, f"{at}.{key}")
    return found + _app_armor_problems(annotations, spec, at)


def static_problems(annotations: JsonObject, spec: JsonObject) -> list[FieldCause]:
    """Return the fields that a mirror pod cannot have."""
    if MIRROR not in annotations or not spec.get("resourceClaims"):
        return []
    return [forbidden_field("[]", "static pods do not support resource claims")]


def _is_cost(text: str) -> bool:
    plain = text == "0" or (_WHOLE.fullmatch(text) is not None and text[:1] != "0")
    return plain and -(2**31) <= int(text) < 2**31


def _toleration_problems(text: str, at: str) -> list[FieldCause]:
    try:
        tolerations = decode(text)
    except msgspec.DecodeError as problem:
        return [bad_value(at, _TOLERATIONS, str(problem))]
    if not isinstance(tolerations, list) or not all(isinstance(one, dict) for one in tolerations):
        return [bad_value(at, _TOLERATIONS, "must be a list of tolerations")]
    return toleration_problems(tolerations, f"{at}.{_TOLERATIONS}")


def _seccomp_problems(profile: str, at: str) -> list[FieldCause]:
    if profile in (*_DEFAULTS, "unconfined"):
        return []
    if profile.startswith("localhost/"):
        return descending_problems(profile.removeprefix("localhost/"), at)
    return [bad_value(at, profile, "must be a valid seccomp profile")]


def _app_armor_problems(annotations: JsonObject, spec: JsonObject, at: str) -> list[FieldCause]:
    found = []
    for key, profile in annotations.items():
        if not key.startswith(APP_ARMOR):
            continue
        name = key.removeprefix(APP_ARMOR)
        if not any(one.get("name") == name for one, _ in containers_of(spec, "")):
            found.append(bad_value(f"{at}[{key}]", name, "container not found"))
        known = ("", "runtime/default", "unconfined")
        if profile not in known and not profile.startswith("localhost/"):
            detail = f"invalid AppArmor profile name: {quoted(profile)}"
            found.append(bad_value(f"{at}[{key}]", profile, detail))
    return found


def annotation_change_problems(new: JsonObject, old: JsonObject, at: str) -> list[FieldCause]:
    """Return the annotations that may not change."""
    found = []
    for key in {**old, **new}:
        special = "AppArmor annotations" if key.startswith(APP_ARMOR) else ""
        special = "mirror pod annotation" if key == MIRROR else special
        if special and new.get(key) != old.get(key):
            done = "remove or update" if key in old else "add"
            found.append(forbidden_field(f"{at}[{key}]", f"may not {done} {special}"))
    return found


def profile_match_problems(annotations: JsonObject, spec: JsonObject, at: str) -> list[FieldCause]:
    """Require old annotations and the fields that replaced them to match."""
    if not annotations:
        return []
    context = spec.get("securityContext") or {}
    found = _mismatch(
        annotations.get(SECCOMP), context.get("seccompProfile"), f"{at}.securityContext", "seccomp"
    )
    for container, place in containers_of(spec, at):
        own, name = container.get("securityContext") or {}, container.get("name") or ""
        annotation = annotations.get(f"{SECCOMP_OF_CONTAINER}{name}")
        profile = own.get("seccompProfile")
        found += _mismatch(annotation, profile, f"{place}.securityContext", "seccomp")
    if (spec.get("os") or {}).get("name") == "windows":
        return found
    for container, place in containers_of(spec, at):
        own, name = container.get("securityContext") or {}, container.get("name") or ""
        profile = own.get("appArmorProfile") or context.get("appArmorProfile")
        annotation = annotations.get(f"{APP_ARMOR}{name}")
        found += _mismatch(annotation, profile, f"{place}.securityContext", "apparmor")
    return found


def _mismatch(
    annotation: str | None, profile: JsonObject | None, at: str, system: str
) -> list[FieldCause]:
    if annotation is None or profile is None:
        return []
    kind = profile.get("type") or ""
    field = f"{at}.{'seccompProfile' if system == 'seccomp' else 'appArmorProfile'}"
    defaults = _DEFAULTS if system == "seccomp" else _DEFAULTS[:1]
    allowed = {"Unconfined": ("unconfined",), "RuntimeDefault": defaults}.get(kind)
    detail = f"{system} type in annotation and field must match"
    if allowed is not None:
        return [] if annotation in allowed else [forbidden_field(f"{field}.type", detail)]
    if kind != "Localhost":
        return []
    if not annotation.startswith("localhost/"):
        return [forbidden_field(f"{field}.type", detail)]
    if annotation.removeprefix("localhost/") == profile.get("localhostProfile"):
        return []
    detail = f"{system} profile in annotation and field must match"
    return [forbidden_field(f"{field}.localhostProfile", detail)]


def annotated_profile(annotation: str | None) -> JsonObject | None:
    """Return the AppArmor profile of an old annotation, or None."""
    if annotation in ("unconfined", "runtime/default"):
        return {"type": "Unconfined" if annotation == "unconfined" else "RuntimeDefault"}
    if annotation is None or not annotation.startswith("localhost/"):
        return None
    name = annotation.removeprefix("localhost/")
    profile = {"type": "Localhost", "localhostProfile": name}
    return None if app_armor_problems(profile, "") else profile
