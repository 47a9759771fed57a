"""Compiled label selectors and node selectors, in canonical form.

A term without expressions matches no node, and so does a term that does not parse, while the other
terms still count. A term that does not parse keeps its error, so that a validator can report it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from bayplan.kube.meta import LabelSelector
from bayplan.kube.names import is_label_value, is_qualified_name
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_DIGITS = 32
_INT64 = range(-(2**63), 2**63)


class SelectorError(ValueError):
    """A selector that Kubernetes would not accept, with its key and values."""

    def __init__(self, key: str, values: Collection[str], problem: str) -> None:
        shown = ", ".join(repr(value[:40]) for value in list(values)[:3])
        super().__init__(f"selector key {key[:80]!r} with values [{shown}]: {problem}")


class Requirement(NamedTuple):
    """A requirement on labels; hashable and comparable."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet it."""
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
    """Return a validated requirement with sorted, unique values."""
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
    """Return a decimal 64-bit integer; None if the text is none."""
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INT64 else None


def _need(holds: bool, key: str, values: Collection[str], problem: str) -> None:
    if not holds:
        raise SelectorError(key, values, problem)


class Selector:
    """Requirements that labels must all meet, or the selector that matches nothing."""

    __slots__ = ("_equal", "_hash", "_others", "requirements")

    requirements: tuple[Requirement, ...] | None
    """Sorted and unique; None for the selector that matches nothing."""

    def __init__(self, requirements: Collection[Requirement] | None) -> None:
        self.requirements = None if requirements is None else tuple(sorted(set(requirements)))
        self._hash = hash(self.requirements)
        listed = self.requirements or ()
        # Nearly all requirements are one key with one value: kept apart, they need no dispatch.
        self._equal = tuple((r.key, r.values[0]) for r in listed if _is_equality(r))
        self._others = tuple(r for r in listed if not _is_equality(r))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet every requirement."""
        if self.requirements is None:
            return False
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        return all(other.matches(labels) for other in self._others)

    def with_requirement(
        self, key: str, operator: Operator, values: Collection[str] = ()
    ) -> Selector:
        """Return this selector with one more requirement; one that matches nothing stays so."""
        if self.requirements is None:
            return self
        return Selector((*self.requirements, requirement(key, operator, values)))

    @property
    def matches_nothing(self) -> bool:
        """Whether it matches nothing, as an absent selector does."""
        return self.requirements is None

    @property
    def matches_everything(self) -> bool:
        """Whether it has no requirements."""
        return self.requirements == ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Selector({self.requirements!r})"


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector; raise SelectorError if Kubernetes would refuse it."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    wanted = [requirement(key, "In", [value]) for key, value in selector.match_labels.items()]
    wanted += [requirement(e.key, e.operator, e.values) for e in selector.match_expressions]
    return Selector(wanted)


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Return the selector for these labels, unchecked as in Kubernetes."""
    return Selector([Requirement(key, "In", (value,)) for key, value in labels.items()])


def _is_equality(wanted: Requirement) -> bool:
    return wanted.operator == "In" and len(wanted.values) == 1


NOTHING = Selector(None)
EVERYTHING = Selector(())


_NAME_FIELD = "metadata.name"


class NodeTermMatcher:
    """One term: all its expressions and fields must hold."""

    __slots__ = ("_hash", "error", "expressions", "fields")

    error: SelectorError | None
    """Why the term does not parse, and so matches no node; None for a valid one."""

    def __init__(
        self,
        expressions: Iterable[Requirement],
        fields: Iterable[Requirement],
        error: SelectorError | None = None,
    ) -> None:
        self.expressions = tuple(sorted(set(expressions)))
        self.fields = tuple(sorted(set(fields)))
        self.error = error
        self._hash = hash((self.expressions, self.fields, error is None))

    def matches(self, node: Node) -> bool:
        """Return whether the node matches the term."""
        if self.error is not None or not (self.expressions or self.fields):
            return False
        labels = node.metadata.labels
        if not all(wanted.matches(labels) for wanted in self.expressions):
            return False
        return not self.fields or self._fields_match(node.metadata.name)

    def _fields_match(self, name: str) -> bool:
        # A node without a name has no fields; an unknown field reads as empty.
        if not name:
            return True
        return all(
            ((name if wanted.key == _NAME_FIELD else "") == wanted.values[0])
            is (wanted.operator == "In")
            for wanted in self.fields
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NodeTermMatcher)
            and self.expressions == other.expressions
            and self.fields == other.fields
            and (self.error is None) == (other.error is None)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"NodeTermMatcher({self.expressions!r}, {self.fields!r}, {self.error!r})"


class NodeSelectorMatcher:
    """Terms of which one must match; without terms, no node matches. Their order is irrelevant."""

    __slots__ = ("_key", "errors", "terms")

    def __init__(self, terms: Iterable[NodeTermMatcher]) -> None:
        self.terms = tuple(terms)
        self.errors = tuple(term.error for term in self.terms if term.error is not None)
        self._key = frozenset(self.terms)

    def matches(self, node: Node) -> bool:
        """Return whether one of the terms matches the node."""
        return any(term.matches(node) for term in self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSelectorMatcher) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"NodeSelectorMatcher({self.terms!r})"


def compile_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """Compile a node selector; terms that do not parse are in `errors` and match nothing."""
    return NodeSelectorMatcher(compile_node_term(term) for term in selector.node_selector_terms)


def compile_node_term(term: NodeSelectorTerm) -> NodeTermMatcher:
    """Compile a term; if it does not parse, `error` is set and it matches nothing."""
    try:
        expressions = [requirement(e.key, e.operator, e.values) for e in term.match_expressions]
        fields = [_field_requirement(field) for field in term.match_fields]
    except SelectorError as error:
        return NodeTermMatcher((), (), error)
    return NodeTermMatcher(expressions, fields)


def _field_requirement(wanted: NodeSelectorRequirement) -> Requirement:
    if wanted.operator not in {"In", "NotIn"}:
        raise SelectorError(wanted.key, wanted.values, "matchFields allows only In and NotIn")
    if len(wanted.values) != 1:
        raise SelectorError(wanted.key, wanted.values, "matchFields needs exactly one value")
    return Requirement(wanted.key, wanted.operator, tuple(wanted.values))
