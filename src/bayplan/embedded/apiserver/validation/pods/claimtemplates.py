"""The claims that a pod's own volumes are made from."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    annotation_problems,
    dns_label,
    label_problems,
    name_problems,
    subdomain,
)
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.kube.quantity import parse as amount

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def claim_template_problems(template: JsonObject, at: str) -> list[Cause]:
    """What is wrong with the claim that a pod's own volume is made from."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    found = annotation_problems(meta.get("annotations") or {}, f"{at}.metadata.annotations")
    found += label_problems(meta.get("labels") or {}, f"{at}.metadata.labels")
    found += [
        forbidden_field(f"{at}.metadata.{name}", "cannot be set")
        for name, value in meta.items()
        if value and name not in ("annotations", "labels")
    ]
    return found + claim_spec_problems(spec, f"{at}.spec")


def claim_spec_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with what a claim asks for."""
    found = access_mode_problems(spec, at)
    found += storage_problems(spec, at)
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            found += name_problems(subdomain, spec[name], f"{at}.{name}")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        found.append(not_supported(f"{at}.volumeMode", mode, VOLUME_MODES))
    return found + _source_problems(spec, at)


def access_mode_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with how a volume is to be used, and with the selector between."""
    modes, field = spec.get("accessModes") or [], f"{at}.accessModes"
    found = [] if modes else [required(field, "at least 1 access mode is required")]
    found += selector_problems(spec.get("selector"), f"{at}.selector")
    unknown = [mode for mode in modes if mode not in ACCESS_MODES]
    found += [not_supported(field, mode, ACCESS_MODES) for mode in unknown]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        found.append(forbidden_field(field, "may not use ReadWriteOncePod with other access modes"))
    return found


def storage_problems(spec: JsonObject, at: str) -> list[Cause]:
    """What is wrong with how much is asked for."""
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    field = f"{at}.resources[storage]"
    if storage is None:
        return [required(field)]
    return [] if amount(storage) > 0 else [bad_value(field, storage, "must be greater than zero")]


def _source_problems(spec: JsonObject, at: str) -> list[Cause]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[Cause] = []
    for name, one in (("dataSource", source), ("dataSourceRef", reference)):
        if one is not None:
            found += _reference_problems(one, f"{at}.{name}")
    if source is None or reference is None:
        return found
    if reference.get("namespace"):
        why = "may not be specified when dataSourceRef.namespace is specified"
        return [*found, bad_value(at, {}, why)]
    same = all(source.get(name) == reference.get(name) for name in ("apiGroup", "kind", "name"))
    return found if same else [*found, bad_value(at, {}, "must match dataSourceRef")]


def _reference_problems(reference: JsonObject, at: str) -> list[Cause]:
    found = [required(f"{at}.{name}") for name in ("name", "kind") if not reference.get(name)]
    group, kind = reference.get("apiGroup") or "", reference.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(bad_value(at, kind, why))
    if group:
        found += name_problems(subdomain, group, f"{at}.apiGroup")
    if reference.get("namespace"):
        found += name_problems(dns_label, reference["namespace"], f"{at}.namespace")
    return found
