"""Types and checks that configuration files share: names, counts, durations, amounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

import msgspec

from bayplan.base.configfiles import FieldProblem
from bayplan.base.durations import DurationError, parse_duration
from bayplan.base.suggestions import no_such
from bayplan.kube.meta import Quantity
from bayplan.kube.names import is_label_value, is_qualified_name
from bayplan.kube.quantity import QuantityError, parse

T = TypeVar("T")
Duration = str | int | float
"""A text for `parse_duration`, or a number of seconds."""
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class Section(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Base of configuration sections; an unknown field is an error."""


def seconds(value: Duration, path: str) -> float:
    """Return a duration in seconds; raise FieldProblem if it is not valid."""
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except DurationError as error:
            raise FieldProblem(path, str(error)) from None
    if value < 0:
        raise FieldProblem(path, f"{value} is negative")
    return float(value)


def look_up(known: Mapping[str, T], name: str, path: str, what: str) -> T:
    """Return the value of a name; raise FieldProblem with the known names if it is unknown."""
    if name not in known:
        raise FieldProblem(path, no_such(what, name, known))
    return known[name]


def check_unique(found: Mapping[str, object], name: str, path: str) -> None:
    """Raise FieldProblem if a name is already used."""
    if name in found:
        raise FieldProblem(path, f"duplicate {name!r}")


def check_quantities(amounts: Mapping[str, Quantity], path: str) -> None:
    """Raise FieldProblem unless all amounts are quantities and not negative."""
    for name, value in amounts.items():
        try:
            amount = parse(value)
        except QuantityError as error:
            raise FieldProblem(f"{path}.{name}", str(error)) from None
        if amount < 0:
            raise FieldProblem(f"{path}.{name}", f"{value} is negative")


def check_labels(labels: Mapping[str, str], path: str) -> None:
    """Raise FieldProblem unless keys and values are valid labels."""
    checks: tuple[tuple[Callable[[str], bool], int], ...] = (
        (is_qualified_name, 0),
        (is_label_value, 1),
    )
    for pair in labels.items():
        for check, part in checks:
            if not check(pair[part]):
                raise FieldProblem(f"{path}.{pair[0]}", f"{pair[part]!r} is not a valid label")
