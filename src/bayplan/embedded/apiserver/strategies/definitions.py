"""Strategy of CustomResourceDefinitions."""

from __future__ import annotations

from bayplan.embedded.apiserver.crds.definitions import storage_version
from bayplan.embedded.apiserver.crds.rules import (
    definition_change_problems,
    definition_problems,
    new_definition_problems,
)
from bayplan.embedded.apiserver.crds.schemas import unknown_formats
from bayplan.embedded.apiserver.crds.structure import mistyped_keyword
from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import RestStrategy, child, fill, items
from bayplan.embedded.apiserver.validation.causes import quoted

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_TERMINATING = (
    "CustomResourceDefinition marked for deletion; CustomResource deletion will be initiated soon"
)


def _default(definition: JsonObject) -> None:
    spec = child(definition, "spec")
    names = child(spec, "names")
    kind = names.get("kind") or ""
    if kind:
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
    fill(child(spec, "conversion"), strategy="None")
    for version in items(spec, "versions"):
        scale = (version.get("subresources") or {}).get("scale")
        if scale is not None:
            fill(scale, specReplicasPath="", statusReplicasPath="")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None and (wrong := mistyped_keyword(schema)):
            raise bad_request(f"json: cannot unmarshal the value of {wrong}")


def _prepare_create(definition: JsonObject) -> None:
    """Set the initial conditions and the stored versions."""
    kept = [one.get("name") or "" for one in _versions(definition) if one.get("storage")]
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": kept[:1] or None,
    }


def _versions(definition: JsonObject) -> list[JsonObject]:
    return items(definition["spec"], "versions")


def _warnings(definition: JsonObject, _old: JsonObject | None) -> list[str]:
    """Warn about unknown formats."""
    schemas = [(one.get("schema") or {}).get("openAPIV3Schema") for one in _versions(definition)]
    return [
        f"unrecognized format {quoted(name)}"
        for schema in schemas
        for name in sorted(set(unknown_formats(schema or {})))
    ]


def _prepare_update(new: JsonObject, old: JsonObject) -> None:
    status = child(new, "status")
    stored = list((old.get("status") or {}).get("storedVersions") or ())
    version = storage_version(new)
    status["storedVersions"] = stored if version in ("", *stored) else [*stored, version]


def established(definition: JsonObject, now: str) -> JsonObject:
    """Return a definition whose names are accepted and whose kinds are served."""
    status = dict(definition.get("status") or {})
    status["acceptedNames"] = definition["spec"]["names"]
    for type_, reason, conditions in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        status["conditions"] = _with_condition(status, type_, reason, conditions, now)
    return {**definition, "status": status}


def _prepare_delete(definition: JsonObject, now: str) -> None:
    """Set the Terminating condition; it waits until its objects are deleted."""
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    status = child(definition, "status")
    reason = "InstanceDeletionPending"
    status["conditions"] = _with_condition(status, "Terminating", reason, _TERMINATING, now)


def _with_condition(
    status: JsonObject, type_: str, reason: str, message: str, now: str
) -> list[JsonObject]:
    conditions: list[JsonObject] = status.get("conditions") or []
    if any(one.get("type") == type_ and one.get("status") == "True" for one in conditions):
        return conditions
    texts = {"reason": reason, "message": message}
    condition = {"type": type_, "status": "True", "lastTransitionTime": now, **texts}
    return [*(one for one in conditions if one.get("type") != type_), condition]


DEFINITIONS = RestStrategy(
    default=_default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_delete=_prepare_delete,
    warnings=_warnings,
    validate=definition_problems,
    validate_new=new_definition_problems,
    validate_update=definition_change_problems,
)
