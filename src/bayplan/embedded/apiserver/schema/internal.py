"""Objects in kube-apiserver's internal form, as its messages show them.

Internal kinds have no version and no JSON names: an error that shows a whole object, or a
difference of two, shows every field under its Go name, in the order of its declaration, with null
for absent ones. The table beside the others lists those fields by type: the Go name, `=` the JSON
name where it differs in more than the capital, `*` where absence is null.
"""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib import resources
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.schema.types import ZEROS, FieldType, require_type

_OF_THE_POD: JsonObject = {
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "shareProcessNamespace": None,
    "hostUsers": None,
}
"""Fields of a pod's spec that are internally in its security context, and their defaults."""
_HTML = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


class _Member(NamedTuple):
    """A field of the internal form."""

    go_name: str
    name: str
    nilable: bool


@cache
def _forms() -> dict[str, tuple[_Member, ...]]:
    text = resources.files(__package__).joinpath("tables", "internal.txt").read_text("utf-8")
    lines = (line.split() for line in text.splitlines())
    return {type_: tuple(map(_member, words)) for type_, *words in lines}


def _member(word: str) -> _Member:
    go_name, _, name = word.removesuffix("*").partition("=")
    return _Member(go_name, name or go_name[0].lower() + go_name[1:], word.endswith("*"))


def internal_form(value: JsonObject, type_name: str) -> JsonObject:
    """Return an object of a type in its internal form."""
    members = _forms().get(type_name)
    if members is None:
        return _as_written(value, type_name)
    if type_name == "core.PodSpec":
        value = _with_its_own_security(value)
    fields = require_type(type_name).fields
    # Metadata is embedded: its fields are those of the object.
    embedded = members[0].name == "metadata"
    shown = _as_written(value.get("metadata") or {}, "meta.ObjectMeta") if embedded else {}
    return shown | {
        one.go_name: _shown(value.get(one.name), fields.get(one.name), nilable=one.nilable)
        for one in members
        if one.name != "metadata"
    }


def _as_written(value: JsonObject, type_name: str) -> JsonObject:
    fields = require_type(type_name).fields.items()
    return {name: _shown(value[name], one, nilable=True) for name, one in fields if name in value}


def _with_its_own_security(spec: JsonObject) -> JsonObject:
    moved = {name: spec.get(name, absent) for name, absent in _OF_THE_POD.items()}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or ""
    security = {**(spec.get("securityContext") or {}), **moved}
    return {**spec, "serviceAccountName": account, "securityContext": security}


def _shown(value: JsonValue, field: FieldType | None, *, nilable: bool) -> JsonValue:
    if field is None:
        return value if value is not None or nilable else 0
    if value is None:
        return None if nilable else _absent(field)
    if field.is_map:
        return {key: _inside(item, field) for key, item in sorted(value.items())}
    return [_inside(item, field) for item in value] if field.is_list else _inside(value, field)


def _inside(value: JsonValue, field: FieldType) -> JsonValue:
    return internal_form(value, field.base) if field.is_object else value


def _absent(field: FieldType) -> JsonValue:
    return internal_form({}, field.base) if field.is_object else ZEROS.get(field.base)


def difference(old: JsonObject, new: JsonObject, type_name: str) -> str:
    """Return the difference of two objects of a type, line by line."""
    before, after = (_printed(internal_form(one, type_name)) for one in (old, new))
    lines = list(difflib.unified_diff(before, after, n=3))
    return "".join(lines[2:])


def _printed(value: JsonObject) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False).translate(_HTML)
    return [f"{line}\n" for line in text.split("\n")]
