"""Whether a manifest is an object that the server would take as it is written."""

from __future__ import annotations

import re

from bayplan.base.configfiles import FieldProblem
from bayplan.base.suggestions import suggestion
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.schema.checking import Mismatch, Report, check_object
from bayplan.embedded.apiserver.schema.roots import root_type
from bayplan.embedded.apiserver.schema.types import ObjectType, find_type

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")
_GROUPS = {(kind.api_version, kind.kind): kind.group for kind in BUILTIN}


def check_manifest(obj: object, place: str) -> JsonObject:
    """The object; FieldProblem, with the field's path under `place`, if it is none."""
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(meta, dict):
        raise FieldProblem(place, "is no object with metadata")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str):
            raise FieldProblem(place, f"has no {field}")
    if not isinstance(meta.get("name"), str):
        raise FieldProblem(place, "has no metadata.name")
    _check_shape(obj, place)
    return obj


def _check_shape(obj: JsonObject, place: str) -> None:
    """Built-in kinds have a shape; whether anybody serves others is known once CRDs are made."""
    group = _GROUPS.get((obj["apiVersion"], obj["kind"]))
    type_ = None if group is None else root_type(group, obj["kind"])
    if type_ is None:
        return
    report = Report([])
    try:
        check_object(clone(obj), type_, report)
    except Mismatch as problem:
        said = str(problem).removeprefix(f"{problem.field}: ")
        raise FieldProblem(_under(place, problem.field), said) from None
    except RecursionError:
        raise FieldProblem(place, "is nested too deeply") from None
    for path in report.unknown[:1]:
        known = fields_around(type_, path)
        name = path.rpartition(".")[2]
        raise FieldProblem(_under(place, path), f"there is no such field{suggestion(name, known)}")


def fields_around(type_: ObjectType | None, path: str) -> list[str]:
    """The fields that there are where the last one of a path stands."""
    steps = [one for one in _STEP.findall(path) if not one.startswith("[")]
    in_map = False
    for step in steps[:-1]:
        if in_map:
            in_map = False  # an entry's key, not a field
            continue
        field = type_.fields.get(step) if type_ is not None else None
        in_map = field is not None and field.is_map
        type_ = find_type(field.base) if field is not None else None
    return list(type_.fields) if type_ is not None else []


def _under(place: str, path: str) -> str:
    return f"{place}.{path}" if place else path
