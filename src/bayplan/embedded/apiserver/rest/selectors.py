"""Label and field selectors: as they stand in a query string, and inside objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors.labels import compile_selector
from bayplan.kube.selectors.requirement import SelectorError

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s+\(([^()]*)\)\s*$")
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==|=|!=|>|<)\s*([A-Za-z0-9._-]*)\s*$")
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*$")
_SPLIT = re.compile(r",(?![^()]*\))")
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
                value = entry.fields.get(key)
            if not _OPERATORS[operator](value, wanted):
                return False
        return True


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read `a=b,c!=d,e in (f,g),!h`."""
    return tuple(_label(part) for part in _SPLIT.split(text)) if text.strip() else ()


def _label(part: str) -> Requirement:
    if found := _SET.match(part):
        values = frozenset(value.strip() for value in found[3].split(","))
        return Requirement(found[1], found[2], values)
    if found := _EQUAL.match(part):
        operator = {"=": "in", "==": "in", "!=": "notin"}.get(found[2], found[2])
        return Requirement(found[1], operator, frozenset((found[3],)))
    if found := _EXISTS.match(part):
        return Requirement(found[2], "absent" if found[1] else "exists", frozenset())
    raise bad_request(f"unable to parse requirement: {part.strip()!r} is not a label selector")


def parse_fields(text: str, known: Iterable[str]) -> tuple[Requirement, ...]:
    """Read `spec.nodeName=a,status.phase!=Running`; only the known fields can be selected by."""
    if not text.strip():
        return ()
    allowed = set(known)
    return tuple(_field(part, allowed) for part in _FIELD_SPLIT.split(text))


def the_one_name(text: str) -> str:
    """The name of the one object that a field selector leaves, or empty if it does not say."""
    for part in _FIELD_SPLIT.split(text):
        found = _FIELD.match(part)
        if found is not None and found[1] == "metadata.name" and found[2] != "!=":
            return re.sub(r"\\(.)", r"\1", found[3])
    return ""


def _field(part: str, allowed: set[str]) -> Requirement:
    found = _FIELD.match(part)
    if found is None:
        raise bad_request(f"invalid selector: {part.strip()!r}; can't understand it")
    if found[1] not in allowed:
        raise bad_request(f"field label not supported: {found[1]}")
    operator = "field!=" if found[2] == "!=" else "field="
    value = re.sub(r"\\(.)", r"\1", found[3])
    return Requirement(found[1], operator, frozenset((value,)))


def select(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Whether labels meet a selector inside an object (`matchLabels`, `matchExpressions`).

    An empty one selects everything, a broken one nothing.
    """
    try:
        compiled = compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return False
    return compiled.matches(labels)
