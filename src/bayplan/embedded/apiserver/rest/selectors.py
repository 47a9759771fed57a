"""Label and field selectors: as they stand in a query string, and inside objects.

Asking takes time that does not grow with how many requirements there are: a query may hold
thousands, and each object of a list is asked.

They are read token by token, so that what is wrong can be said as kube-apiserver says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import ApiError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import ALWAYS
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.validation.causes import bad_value
from bayplan.embedded.apiserver.validation.names import label_value, path_segment, qualified_name
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors import SelectorError, compile_selector

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which values a label that must be there may have."""

    values: frozenset[str] | None = None
    """One of these; None for any."""
    above: int | None = None
    below: int | None = None

    def narrowed(self, operator: str, values: frozenset[str]) -> Bounds:
        """These bounds and one more requirement."""
        if operator == "in":
            both = values if self.values is None else self.values & values
            return Bounds(both, self.above, self.below)
        if operator == ">":
            above = [int(value) for value in values]
            return replace(self, above=max(above if self.above is None else [*above, self.above]))
        if operator == "<":
            below = [int(value) for value in values]
            return replace(self, below=min(below if self.below is None else [*below, self.below]))
        return self

    def hold(self, value: str) -> bool:
        """Whether a label's value is one of them."""
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
    """What an object's labels must and must not be."""

    wanted: dict[str, Bounds] = field(default_factory=dict)
    unwanted: dict[str, frozenset[str]] = field(default_factory=dict)
    """Values that a label must not have."""
    absent: set[str] = field(default_factory=set)
    """Labels that must not be there."""

    def __bool__(self) -> bool:
        return bool(self.wanted or self.unwanted or self.absent)

    def add(self, key: str, operator: str, values: Iterable[str] = ()) -> None:
        """Require one thing more."""
        if operator == "absent":
            self.absent.add(key)
        elif operator == "notin":
            self.unwanted[key] = self.unwanted.get(key, frozenset()) | frozenset(values)
        else:
            bounds = self.wanted.get(key) or Bounds()
            self.wanted[key] = bounds.narrowed(operator, frozenset(values))

    def hold(self, labels: Mapping[str, str]) -> bool:
        """Whether labels are as required; stops at the first label that is not there."""
        for key, bounds in self.wanted.items():
            value = labels.get(key)
            if value is None or not bounds.hold(value):
                return False
        if not self.absent and not self.unwanted:
            return True
        return not any(
            key in self.absent or value in self.unwanted.get(key, ())
            for key, value in labels.items()
        )


def whole_number(text: str) -> int | None:
    """A number of 64 bits, as Go reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else None


_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", "in": "in", "notin": "notin"} | {
    ">": ">",
    "<": "<",
}
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_BINARY = "in, notin, =, ==, !=, gt, lt"


class _BadRequirement(Exception):  # noqa: N818 - it becomes a refusal
    """What is wrong with one requirement."""


class _Tokens:
    """The pieces of a selector; empty at its end."""

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
    """The requirements of a selector; 400 if it cannot be read."""
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


def _refusal(message: str) -> ApiError:
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
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(_invalid(f"values[{index}]", value, why))
        problems = label_value(value)
        if problems:
            found.append(_invalid(f"values[{index}][{key}]", value, "; ".join(problems)))
    if found:
        raise _BadRequirement(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _invalid(field: str, value: str, why: str) -> str:
    return f"{field}: {bad_value(field, value, why).message}"


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_FIELD_SPLIT = re.compile(r"(?<!\\),")
_FIELD_OPERATORS = re.compile(r"!=|==|=")


ANY_LABELS = LabelRequirements()


class Requirement(NamedTuple):
    """What one field must be, or must not be."""

    key: str
    equal: bool
    values: frozenset[str]

    def holds(self, value: str | None) -> bool:
        """Whether a field's value is as required; one that is not there is empty."""
        return ((value or "") in self.values) == self.equal


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
    labels: LabelRequirements = ANY_LABELS
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
        if self.labels and not self.labels.hold(entry.labels):
            return False
        return not self.fields or self._fields_match(entry)

    def _fields_match(self, entry: Entry) -> bool:
        for requirement in self.fields:
            key = requirement.key
            if key == "metadata.name":
                value: str | None = entry.key.name
            elif key == "metadata.namespace":
                value = entry.key.namespace
            else:
                value = entry.fields.get(key, _UNSET.get(key))
            if not requirement.holds(value):
                return False
        return True


def parse_fields(text: str, kind: Kind) -> tuple[Requirement, ...]:
    """Read `spec.nodeName=a,status.phase!=Running`; only the known fields can be selected by.

    What is required of one field is put together, however often it is said.
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
    return tuple(Requirement(*mark, values) for mark, values in together.items())


def the_one_name(text: str) -> str:
    """The name of the one object that a field selector leaves, or empty if it does not say."""
    for part in _FIELD_SPLIT.split(text):
        key, equal, value = _split(part)
        if key == "metadata.name" and equal:
            return "" if path_segment(value) else value
    return ""


def _term(part: str, whole: str, kind: Kind) -> tuple[str, bool, str]:
    key, equal, value = _split(part)
    if equal is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")
    if key not in ALWAYS and key not in kind.fields:
        raise bad_request(_unselectable(key, kind))
    return key, equal, value


def _split(part: str) -> tuple[str, bool | None, str]:
    """A field, whether it must be equal, and to what; None if the text does not say."""
    found = _FIELD_OPERATORS.search(part)
    if found is None:
        return part, None, ""
    value = _ESCAPED.sub(r"\1", part[found.end() :])
    return part[: found.start()], found[0] != "!=", value


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
