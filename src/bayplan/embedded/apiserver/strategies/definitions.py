"""What a CustomResourceDefinition must be, and what the server says about it."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.crds.definitions import storage_version
from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.strategies.strategy import Strategy, child, fill, items
from bayplan.embedded.apiserver.validation.causes import bad_value, not_supported, required
from bayplan.embedded.apiserver.validation.names import dns1035_label, name_problems

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_DEEPEST = 60


def _default(definition: JsonObject) -> None:
    spec = child(definition, "spec")
    names = child(spec, "names")
    kind = names.get("kind") or ""
    fill(names, singular=kind.lower(), listKind=f"{kind}List")
    fill(child(spec, "conversion"), strategy="None")


def _prepare_create(definition: JsonObject) -> None:
    definition["metadata"].setdefault("finalizers", []).append(CLEANUP)
    now = definition["metadata"]["creationTimestamp"]
    definition["status"] = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the kinds are served", now),
        ],
        "acceptedNames": definition["spec"]["names"],
        "storedVersions": [storage_version(definition)],
    }


def _condition(kind: str, reason: str, message: str, now: str) -> JsonObject:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }


def _prepare_update(new: JsonObject, old: JsonObject) -> None:
    status = child(new, "status")
    status["acceptedNames"] = new["spec"]["names"]
    stored = list((old.get("status") or {}).get("storedVersions") or ())
    version = storage_version(new)
    status["storedVersions"] = stored if version in stored else [*stored, version]


def _validate(definition: JsonObject) -> list[Cause]:
    spec = definition["spec"]
    names, group = spec["names"], spec.get("group") or ""
    found = _name_problems(definition, names, group)
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        found.append(not_supported("spec.scope", spec.get("scope"), ("Cluster", "Namespaced")))
    if spec["conversion"].get("strategy") != "None":
        place = "spec.conversion.strategy"
        found.append(not_supported(place, spec["conversion"].get("strategy"), ("None",)))
    return found + _version_problems(spec)


def _name_problems(definition: JsonObject, names: JsonObject, group: str) -> list[Cause]:
    plural = names.get("plural") or ""
    found = [
        required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)
    ]
    found += name_problems(dns1035_label, plural, "spec.names.plural")
    if not group or "." not in group or group in _BUILTIN_GROUPS:
        why = "should be a domain with at least one dot, and not one of the server's own groups"
        found.append(bad_value("spec.group", group, why))
    name = definition["metadata"].get("name")
    if name != f"{plural}.{group}":
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(bad_value("metadata.name", name, why))
    return found


def _version_problems(spec: JsonObject) -> list[Cause]:
    versions = items(spec, "versions")
    found: list[Cause] = []
    if sum(1 for one in versions if one.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(bad_value("spec.versions", len(versions), why))
    for index, version in enumerate(versions):
        place = f"spec.versions[{index}]"
        name = version.get("name") or ""
        found += name_problems(dns1035_label, name, f"{place}.name")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            found.append(required(f"{place}.schema.openAPIV3Schema", "schemas are required"))
        else:
            found += schema_problems(schema, f"{place}.schema.openAPIV3Schema", 0)
    return found


def schema_problems(schema: JsonObject, place: str, depth: int) -> list[Cause]:
    """Whether a schema can be used to check, prune and default with."""
    if depth > _DEEPEST:
        return [bad_value(place, depth, "is nested too deeply")]
    found: list[Cause] = []
    kind = schema.get("type")
    if kind not in (None, *_TYPES):
        found.append(not_supported(f"{place}.type", kind, _TYPES))
    if depth == 0 and kind != "object":
        found.append(bad_value(f"{place}.type", kind, 'must be "object" at the root'))
    pattern = schema.get("pattern")
    if pattern is not None and not _compiles(pattern):
        found.append(bad_value(f"{place}.pattern", pattern, "must be a valid regular expression"))
    for name, inner in (schema.get("properties") or {}).items():
        found += schema_problems(inner, f"{place}.properties[{name}]", depth + 1)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found += schema_problems(schema[name], f"{place}.{name}", depth + 1)
    return found


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _validate_update(new: JsonObject, old: JsonObject) -> list[Cause]:
    found = []
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        before, after = old["spec"], new["spec"]
        for part in path:
            before, after = (before or {}).get(part), (after or {}).get(part)
        if before != after:
            found.append(bad_value("spec." + ".".join(path), after, "field is immutable"))
    return found


DEFINITIONS = Strategy(
    default=_default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=_validate,
    validate_update=_validate_update,
)
