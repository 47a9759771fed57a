"""The claims that a pod's own volumes are made from."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import forbidden_field
from bayplan.embedded.apiserver.validation.claims import claim_spec_problems
from bayplan.embedded.apiserver.validation.names import annotation_problems, label_problems


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
