"""What labels must be for an object to be selected.

Asking takes time that does not grow with how many requirements there are: a query may hold
thousands, and each object of a list is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

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
