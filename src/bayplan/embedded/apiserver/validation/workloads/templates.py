"""What is wrong with the template of a workload's pods."""

from __future__ import annotations

import msgspec

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, not_supported
from bayplan.embedded.apiserver.validation.names import annotation_problems, label_problems
from bayplan.embedded.apiserver.validation.pods.annotations import (
    annotation_meanings_problems,
    profile_match_problems,
)
from bayplan.embedded.apiserver.validation.pods.spec import pod_spec_problems
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors import compile_selector


def template_problems(template: JsonObject, field: str) -> list[Cause]:
    """What is wrong with a template: its labels, its annotations and its pods' spec."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = meta.get("annotations") or {}
    found = label_problems(meta.get("labels") or {}, f"{field}.labels")
    found += annotation_problems(annotations, f"{field}.annotations")
    found += annotation_meanings_problems(annotations, spec, f"{field}.annotations")
    found += pod_spec_problems(spec, f"{field}.spec")
    found += profile_match_problems(annotations, spec, f"{field}.spec")
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        found.append(forbidden_field(f"{field}.spec.ephemeralContainers", why))
    return found


def staying_template_problems(template: JsonObject, field: str, kind: str) -> list[Cause]:
    """What is wrong with a template of pods that are to run for good."""
    spec = template.get("spec") or {}
    found = template_problems(template, field)
    if spec.get("restartPolicy") != "Always":
        policy = spec.get("restartPolicy") or ""
        found.append(not_supported(f"{field}.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        found.append(forbidden_field(f"{field}.spec.activeDeadlineSeconds", why))
    return found


def mismatched_labels(selector: JsonObject | None, template: JsonObject, field: str) -> list[Cause]:
    """A sound selector must match the template; none matches nothing, an empty one everything."""
    labels = (template.get("metadata") or {}).get("labels")
    compiled = compile_selector(msgspec.convert(selector, LabelSelector | None))
    if compiled.matches(labels or {}):
        return []
    why = "`selector` does not match template `labels`"
    shown = dict(sorted(labels.items())) if labels else None
    return [bad_value(f"{field}.metadata.labels", shown, why)]
