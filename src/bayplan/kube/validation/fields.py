"""Checks of fields that all kinds share, and the error for an invalid field.

Paths are built only while an error propagates, so that valid objects cost no strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from bayplan.kube import quantity
from bayplan.kube.meta import LabelSelector, Quantity
from bayplan.kube.names import MAX_NAME, is_label_value, is_object_name, is_qualified_name
from bayplan.kube.nodes import NodeSelectorTerm
from bayplan.kube.resources import CPU, is_extended, is_hugepage
from bayplan.kube.selectors import SelectorError, compile_node_term, compile_selector

T = TypeVar("T")

# The cached checks raise for invalid values and so never keep them: they could be of any size.
_CACHED = 1 << 16


class FieldError(ValueError):
    """An invalid field; the path grows while the error propagates."""

    def __init__(self, path: str, shown: object, problem: str) -> None:
        super().__init__(problem)
        self.path, self.shown, self.problem = path, shown, problem

    def under(self, parent: str) -> FieldError:
        """Return this error with the parent field in its path."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return FieldError(f"{parent}{dot}{self.path}", self.shown, self.problem)


def within(field: str, checked: Callable[[T], None], value: T) -> None:
    """Check the value of a field."""
    try:
        checked(value)
    except FieldError as error:
        raise error.under(field) from None


def each(field: str, checked: Callable[[T], None], values: Iterable[T]) -> None:
    """Check every value of a list."""
    for index, value in enumerate(values):
        try:
            checked(value)
        except FieldError as error:
            raise error.under(f"{field}[{index}]") from None


def amounts(field: str, quantities: Mapping[str, Quantity]) -> None:
    """Check the quantities of a resource map."""
    for name, written in quantities.items():
        try:
            _check_amount(name, written)
        except ValueError as error:
            raise FieldError(f"{field}.{name[:80]}", written, str(error)) from None


def amount(field: str, written: Quantity) -> None:
    """Check a single quantity."""
    try:
        _check_amount("", written)
    except ValueError as error:
        raise FieldError(field, written, str(error)) from None


def labels(field: str, pairs: Mapping[str, str]) -> None:
    """Check labels, or a selector that is a map of them."""
    for key, value in pairs.items():
        try:
            _check_label(key, value)
        except ValueError as error:
            raise FieldError(f"{field}.{key[:80]}", value, str(error)) from None


def name(field: str, text: str) -> None:
    """Check the name of an object."""
    if not is_object_name(text):
        problem = "not a valid name, or too long" if text else "is missing"
        raise FieldError(field, text, problem)


def optional_name(field: str, text: str | None) -> None:
    """Check the name of an object, if present."""
    if text and (len(text) > MAX_NAME or not _is_known_name(text)):
        name(field, text)


def optional_time(field: str, text: str | None) -> None:
    """Check a time with its zone, if present."""
    if text is None:
        return
    try:
        known = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    need(known, field, text, "not a time with its zone, such as 2026-01-31T12:00:00Z")


def label_key(field: str, text: str) -> None:
    """Check the key of a label."""
    if not is_qualified_name(text):
        raise FieldError(field, text, "not a label key" if text else "is missing")


def selector(field: str, written: LabelSelector | None) -> None:
    """Check that a label selector compiles."""
    if written is None:
        return
    try:
        compile_selector(written)
    except SelectorError as error:
        raise FieldError(field, None, str(error)) from None


def node_term(written: NodeSelectorTerm) -> None:
    """Check that a node selector term compiles."""
    error = compile_node_term(written).error
    if error is not None:
        raise FieldError("", None, str(error))


def need(holds: bool, field: str, shown: object, problem: str) -> None:
    """Raise FieldError unless a condition holds."""
    if not holds:
        raise FieldError(field, shown, problem)


@lru_cache(_CACHED)
def _is_known_name(text: str) -> bool:
    return is_object_name(text)


@lru_cache(_CACHED)
def _check_label(key: str, value: str) -> None:
    if not is_qualified_name(key):
        raise ValueError("not a label key")
    if not is_label_value(value):
        raise ValueError("not a label value")


@lru_cache(_CACHED, typed=True)
def _check_amount(resource: str, written: Quantity) -> None:
    if resource and not is_qualified_name(resource):
        raise ValueError("not the name of a resource")
    exact = quantity.parse(written)
    if exact < 0:
        raise ValueError("must not be negative")
    counted = quantity.milli_value(written) if resource == CPU else quantity.value(written)
    if counted > quantity.MAX_INT64:
        raise ValueError("does not fit 64 bits")
    if exact.denominator != 1 and (is_hugepage(resource) or is_extended(resource)):
        raise ValueError("must be a whole number")
