"""Label and field selectors, of query strings and of objects.

The time of a match does not depend on the number of requirements: a query may have thousands, and
each object of a list is matched.

They are read token by token, so that errors have kube-apiserver's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import StatusError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import ALWAYS
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.validation.causes import bad_value
from bayplan.embedded.apiserver.validation.names import label_value, path_segment, qualified_name
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors import SelectorError, compile_selector

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class LabelBounds:
    """The values that a required label may have."""

    values: frozenset[str] | None = None
    """One of these; None for any."""
    above: int | None = None
    below: int | None = None

    def narrowed(self, operator: str, values: frozenset[str]) -> LabelBounds:
        """Return these bounds with one more requirement."""
        if operator == "in":
            both = values if self.values is None else self.values & values
            return LabelBounds(both, self.above, self.below)
        if operator == ">":
            above = [int(value) for value in values]
            return replace(self, above=max(above if self.above is None else [*above, self.above]))
        if operator == "<":
            below = [int(value) for value in values]
            return replace(self, below=min(below if self.below is None else [*below, self.below]))
        return self

    def matches(self, value: str) -> bool:
        """Return whether a label's value is within the bounds."""
        if self.values is not None and value not in self.values:
            return False
        if self.above is None and self.below is None:
            return True
        number = whole_number(value)
        if number is None:
            return False
        return (self.above is None or number > self.above) and (
            self.below is None or number < self.below
        )


@dataclass(slots=True)
class LabelRequirements:
    """Requirements on an object's labels."""

    wanted: dict[str, LabelBounds] = field(default_factory=dict)
    unwanted: dict[str, frozenset[str]] = field(default_factory=dict)
    """Values that a label must not have."""
    absent: set[str] = field(default_factory=set)
    """Labels that must not exist."""

    def __bool__(self) -> bool:
        return bool(self.wanted or self.unwanted or self.absent)

    def add(self, key: str, operator: str, values: Iterable[str] = ()) -> None:
        """Add one requirement."""
        if operator == "absent":
            self.absent.add(key)
        elif operator == "notin":
            self.unwanted[key] = self.unwanted.get(key, frozenset()) | frozenset(values)
        else:
            bounds = self.wanted.get(key) or LabelBounds()
            self.wanted[key] = bounds.narrowed(operator, frozenset(values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirements; stops at the first missing label."""
        for key, bounds in self.wanted.items():
            value = labels.get(key)
            if value is None or not bounds.matches(value):
                return False
        if not self.absent and not self.unwanted:
            return True
        return not any(
            key in self.absent or value in self.unwanted.get(key, ())
            for key, value in labels.items()
        )


def whole_number(text: str) -> int | None:
    """Return a number of 64 bits, as Go parses it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    number = int(text)
    return number if _MIN_INT64 <= number <= _MAX_INT64 else None


_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", "in": "in", "notin": "notin"} | {
    ">": ">",
    "<": "<",
}
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_BINARY = "in, notin, =, ==, !=, gt, lt"


class _BadRequirement(Exception):  # noqa: N818 - it becomes a refusal
    """Why one requirement is invalid."""


class _Tokens:
    """The tokens of a selector; empty at its end."""

    def __init__(self, text: str) -> None:
        self._items = _TOKEN.findall(text.partition("\0")[0])
        self._at = 0

    def peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def take(self) -> str:
        item = self.peek()
        self._at += 1
        return item


def parse_labels(text: str) -> LabelRequirements:
    """Parse a label selector; 400 if it is invalid."""
    tokens = _Tokens(text)
    found = LabelRequirements()
    while tokens.peek():
        if _is_symbol(tokens.peek(), besides="!"):
            raise _refusal(f"found '{tokens.peek()}', expected: !, identifier, or 'end of string'")
        try:
            _read_requirement(tokens, found)
        except _BadRequirement as problem:
            raise _refusal(f"unable to parse requirement: {problem}") from problem
        after = tokens.take()
        if after == ",":
            if _is_symbol(tokens.peek(), besides="!"):
                raise _refusal(f"found '{tokens.peek()}', expected: identifier after ','")
        elif after:
            raise _refusal(f"found '{after}', expected: ',' or 'end of string'")
    return found


def _refusal(message: str) -> StatusError:
    return bad_request(message)


def _is_symbol(token: str, besides: str | None = None) -> bool:
    return token in _SYMBOLS and token != besides


def _read_requirement(tokens: _Tokens, found: LabelRequirements) -> None:
    key = tokens.take()
    absent = key == "!"
    if absent:
        key = tokens.take()
    if _is_symbol(key):
        raise _BadRequirement(f"found '{key}', expected: identifier")
    problems = qualified_name(key)
    if problems:
        raise _BadRequirement(_invalid("<nil>", key, "; ".join(problems)))
    if tokens.peek() in ("", ","):
        found.add(key, "absent" if absent else "exists")
        return
    operator = tokens.take()
    if operator not in _OPERATORS:
        raise _BadRequirement(f"found '{operator}', expected: {_BINARY}")
    values = _set(tokens) if operator in ("in", "notin") else [_exact(tokens)]
    _check(key, operator, values)
    found.add(key, _OPERATORS[operator], values)


def _exact(tokens: _Tokens) -> str:
    if tokens.peek() in ("", ","):
        return ""
    value = tokens.take()
    if _is_symbol(value):
        raise _BadRequirement(f"found '{value}', expected: identifier")
    return value


def _set(tokens: _Tokens) -> list[str]:
    opening = tokens.take()
    if opening != "(":
        raise _BadRequirement(f"found '{opening}' expected: '('")
    values: list[str] = []
    if tokens.peek() == ")":
        tokens.take()
        return [""]
    if _is_symbol(tokens.peek(), besides=","):
        raise _BadRequirement(f"found '{tokens.peek()}', expected: ',', ')' or identifier")
    value = ""
    while True:
        token = tokens.take()
        if token in (",", ")"):
            values.append(value)
            value = ""
            if token == ")":  # noqa: S105
                return sorted(set(values))
        elif _is_symbol(token):
            raise _BadRequirement(f"found '{token}', expected: ',', or identifier")
        else:
            value = token
            if tokens.peek() not in (",", ")"):
                raise _BadRequirement(f"found '{tokens.peek()}', expected: ',' or ')'")


def _check(key: str, operator: str, values: list[str]) -> None:
    found = []
    for index, value in enumerate(values):
        if operator in ("<", ">") and whole_number(value) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(_invalid(f"values[{index}]", value, detail))
        problems = label_value(value)
        if problems:
            found.append(_invalid(f"values[{index}][{key}]", value, "; ".join(problems)))
    if found:
        raise _BadRequirement(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _invalid(field: str, value: str, detail: str) -> str:
    return f"{field}: {bad_value(field, value, detail).message}"


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_FIELD_SPLIT = re.compile(r"(?<!\\),")
_FIELD_OPERATORS = re.compile(r"!=|==|=")


ANY_LABELS = LabelRequirements()


class FieldRequirement(NamedTuple):
    """A required or excluded value of one field."""

    key: str
    equal: bool
    values: frozenset[str]

    def matches(self, value: str | None) -> bool:
        """Return whether a field's value meets the requirement; an absent one is empty."""
        return ((value or "") in self.values) == self.equal


_UNSET = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.successful": "0",
    "status.replicas": "0",
}
"""Values of unset fields, where that is not the empty string."""


class SelectionPredicate(NamedTuple):
    """The objects that a list or a watch selects."""

    namespace: str = ""
    name: str = ""
    labels: LabelRequirements = ANY_LABELS
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Return whether only the namespace restricts it."""
        return not (self.labels or self.fields or self.name)

    def matches(self, entry: StoreEntry) -> bool:
        """Return whether an object matches."""
        key = entry.key
        if self.namespace and key.namespace != self.namespace:
            return False
        if self.name and key.name != self.name:
            return False
        if self.labels and not self.labels.matches(entry.labels):
            return False
        return not self.fields or self._fields_match(entry)

    def _fields_match(self, entry: StoreEntry) -> bool:
        for requirement in self.fields:
            key = requirement.key
            if key == "metadata.name":
                value: str | None = entry.key.name
            elif key == "metadata.namespace":
                value = entry.key.namespace
            else:
                value = entry.fields.get(key, _UNSET.get(key))
            if not requirement.matches(value):
                return False
        return True


def parse_fields(text: str, kind: ServedKind) -> tuple[FieldRequirement, ...]:
    """Parse `spec.nodeName=a,status.phase!=Running`; 400 for a field that is not selectable.

    Several requirements on one field are merged.
    """
    together: dict[tuple[str, bool], frozenset[str]] = {}
    for part in _FIELD_SPLIT.split(text):
        if not part:
            continue
        key, equal, value = _term(part, text, kind)
        values = together.get((key, equal))
        if values is None:
            together[key, equal] = frozenset((value,))
        elif equal:
            together[key, equal] = values & {value}
        else:
            together[key, equal] = values | {value}
    return tuple(FieldRequirement(*mark, values) for mark, values in together.items())


def single_name(text: str) -> str:
    """Return the name that a field selector requires, or ""."""
    for part in _FIELD_SPLIT.split(text):
        key, equal, value = _split(part)
        if key == "metadata.name" and equal:
            return "" if path_segment(value) else value
    return ""


def _term(part: str, whole: str, kind: ServedKind) -> tuple[str, bool, str]:
    key, equal, value = _split(part)
    if equal is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")
    if key not in ALWAYS and key not in kind.fields:
        raise bad_request(_unselectable(key, kind))
    return key, equal, value


def _split(part: str) -> tuple[str, bool | None, str]:
    """Split into a field, whether it must be equal, and the value; None if invalid."""
    found = _FIELD_OPERATORS.search(part)
    if found is None:
        return part, None, ""
    value = _ESCAPED.sub(r"\1", part[found.end() :])
    return part[: found.start()], found[0] != "!=", value


def _unselectable(field: str, kind: ServedKind) -> str:
    if kind.storage == "jobs.batch":
        return f'field label "{field}" not supported for Job'
    if kind.fields or kind.custom is not None:
        return f"field label not supported: {field}"
    known = ", ".join(f'"{name}"' for name in ALWAYS)
    return f'"{field}" is not a known field selector: only {known}'


def matches_selector(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Return whether labels match a selector of an object (`matchLabels`, `matchExpressions`).

    An empty selector matches everything, an invalid one nothing.
    """
    try:
        compiled = compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return False
    return compiled.matches(labels)
