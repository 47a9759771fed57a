"""Label and field selectors: as they stand in a query string, and inside objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.fields import ALWAYS
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors.labels import compile_selector
from bayplan.kube.selectors.requirement import SelectorError

_FIELD = re.compile(r"\s*([^=!]+?)\s*(==|=|!=)(.*)$")
_FIELD_SPLIT = re.compile(r"(?<!\\),")


class Requirement(NamedTuple):
    """One condition on one label or field."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, values: dict[str, str]) -> bool:
        """Whether labels (or fields) meet the condition."""
        return _OPERATORS[self.operator](values.get(self.key), self.values)


def _compare(value: str | None, bounds: frozenset[str], greater: bool) -> bool:
    try:
        number, bound = int(value or ""), int(next(iter(bounds)))
    except ValueError:
        return False
    return number > bound if greater else number < bound


_OPERATORS: dict[str, Callable[[str | None, frozenset[str]], bool]] = {
    "in": lambda value, wanted: value in wanted,
    "notin": lambda value, refused: value not in refused,
    "exists": lambda value, _: value is not None,
    "absent": lambda value, _: value is None,
    ">": lambda value, bounds: _compare(value, bounds, greater=True),
    "<": lambda value, bounds: _compare(value, bounds, greater=False),
    "field=": lambda value, wanted: (value or "") in wanted,
    "field!=": lambda value, refused: (value or "") not in refused,
}


_UNSET = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.successful": "0",
    "status.replicas": "0",
}
"""What fields are selected by that nobody has set, where that is not the empty text."""


class Selector(NamedTuple):
    """Which objects a list or a watch is about."""

    namespace: str = ""
    name: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing but the namespace narrows it."""
        return not (self.labels or self.fields or self.name)

    def matches(self, entry: Entry) -> bool:
        """Whether an object is selected."""
        key = entry.key
        if self.namespace and key.namespace != self.namespace:
            return False
        if self.name and key.name != self.name:
            return False
        if not all(requirement.holds(entry.labels) for requirement in self.labels):
            return False
        return not self.fields or self._fields_match(entry)

    def _fields_match(self, entry: Entry) -> bool:
        for key, operator, wanted in self.fields:
            if key == "metadata.name":
                value: str | None = entry.key.name
            elif key == "metadata.namespace":
                value = entry.key.namespace
            else:
                value = entry.fields.get(key, _UNSET.get(key))
            if not _OPERATORS[operator](value, wanted):
                return False
        return True


def parse_fields(text: str, kind: Kind) -> tuple[Requirement, ...]:
    """Read `spec.nodeName=a,status.phase!=Running`; only the known fields can be selected by."""
    if not text:
        return ()
    return tuple(_field(part, text, kind) for part in _FIELD_SPLIT.split(text) if part)


def the_one_name(text: str) -> str:
    """The name of the one object that a field selector leaves, or empty if it does not say."""
    for part in _FIELD_SPLIT.split(text):
        found = _FIELD.match(part)
        if found is not None and found[1] == "metadata.name" and found[2] != "!=":
            return re.sub(r"\\(.)", r"\1", found[3])
    return ""


def _field(part: str, whole: str, kind: Kind) -> Requirement:
    found = _FIELD.match(part)
    if found is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")
    if found[1] not in (*ALWAYS, *kind.fields):
        raise bad_request(_unselectable(found[1], kind))
    operator = "field!=" if found[2] == "!=" else "field="
    value = re.sub(r"\\(.)", r"\1", found[3])
    return Requirement(found[1], operator, frozenset((value,)))


def _unselectable(field: str, kind: Kind) -> str:
    if kind.storage == "jobs.batch":
        return f'field label "{field}" not supported for Job'
    if kind.fields or kind.custom is not None:
        return f"field label not supported: {field}"
    known = ", ".join(f'"{name}"' for name in ALWAYS)
    return f'"{field}" is not a known field selector: only {known}'


def select(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Whether labels meet a selector inside an object (`matchLabels`, `matchExpressions`).

    An empty one selects everything, a broken one nothing.
    """
    try:
        compiled = compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return False
    return compiled.matches(labels)
