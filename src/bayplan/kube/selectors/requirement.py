"""One requirement on labels: a key, an operator and values, checked and in canonical form."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from bayplan.kube.names import is_label_value, is_qualified_name

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_DIGITS = 32
_INT64 = range(-(2**63), 2**63)


class SelectorError(ValueError):
    """A selector that Kubernetes would not accept; names the key and the value."""

    def __init__(self, key: str, values: Collection[str], problem: str) -> None:
        shown = ", ".join(repr(value[:40]) for value in list(values)[:3])
        super().__init__(f"selector key {key[:80]!r} with values [{shown}]: {problem}")


class Requirement(NamedTuple):
    """A requirement that holds or does not for a set of labels; equal ones are one dict key."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it."""
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found is not None and found in self.values
            case "NotIn":
                return found is None or found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
            case "Gt" | "Lt":
                return found is not None and self._compares(found)

    def _compares(self, found: str) -> bool:
        have, bound = parse_int64(found), parse_int64(self.values[0])
        if have is None or bound is None:
            return False
        return have > bound if self.operator == "Gt" else have < bound


def requirement(key: str, operator: str, values: Collection[str] = ()) -> Requirement:
    """A checked requirement, its values sorted and said once."""
    if not is_qualified_name(key):
        raise SelectorError(key, values, "the key is not a label key")
    for value in values:
        if not is_label_value(value):
            raise SelectorError(key, [value], "not a label value")
    match operator:
        case "In" | "NotIn":
            _need(bool(values), key, values, f"{operator} needs at least one value")
        case "Exists" | "DoesNotExist":
            _need(not values, key, values, f"{operator} takes no values")
        case "Gt" | "Lt":
            integers = len(values) == 1 and all(parse_int64(v) is not None for v in values)
            _need(integers, key, values, f"{operator} needs exactly one integer")
        case _:
            raise SelectorError(key, values, f"unknown operator {operator[:40]!r}")
    return Requirement(key, operator, tuple(sorted(set(values))))


def parse_int64(text: str) -> int | None:
    """A decimal 64-bit integer, or None."""
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INT64 else None


def _need(holds: bool, key: str, values: Collection[str], problem: str) -> None:
    if not holds:
        raise SelectorError(key, values, problem)
