"""What sections of the files that people write share: names, counts, durations, amounts."""

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
"""As `parse_duration` reads it; a number is seconds."""
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class Section(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Base: what is not known is an error."""


def seconds(value: Duration, path: str) -> float:
    """A duration in seconds."""
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except DurationError as error:
            raise FieldProblem(path, str(error)) from None
    if value < 0:
        raise FieldProblem(path, f"{value} is less than nothing")
    return float(value)


def find(known: Mapping[str, T], name: str, path: str, what: str) -> T:
    """What a name stands for; if nothing, the names that exist are told."""
    if name not in known:
        raise FieldProblem(path, no_such(what, name, known))
    return known[name]


def once(found: Mapping[str, object], name: str, path: str) -> None:
    """A name must not be there yet."""
    if name in found:
        raise FieldProblem(path, f"{name!r} is there twice")


def check_quantities(amounts: Mapping[str, Quantity], path: str) -> None:
    """Amounts must be quantities, and not less than nothing."""
    for name, value in amounts.items():
        try:
            amount = parse(value)
        except QuantityError as error:
            raise FieldProblem(f"{path}.{name}", str(error)) from None
        if amount < 0:
            raise FieldProblem(f"{path}.{name}", f"{value} is less than nothing")


def check_labels(labels: Mapping[str, str], path: str) -> None:
    """Keys and values must be what Kubernetes takes as such."""
    checks: tuple[tuple[Callable[[str], bool], int], ...] = (
        (is_qualified_name, 0),
        (is_label_value, 1),
    )
    for pair in labels.items():
        for check, part in checks:
            if not check(pair[part]):
                raise FieldProblem(f"{path}.{pair[0]}", f"{pair[part]!r} is no label")
