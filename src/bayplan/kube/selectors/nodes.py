"""Node selectors, compiled: terms of which one must match a node's labels and fields.

Kubernetes reads them lazily: a term without expressions matches no node, and so does a term that
does not parse, while its siblings still count. A term that does not parse keeps its error, so that
a validator can report what a scheduler must only not match.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.selectors.requirement import Requirement, SelectorError, requirement

_NAME_FIELD = "metadata.name"


class NodeTermMatcher:
    """One term: all its expressions and fields must hold."""

    __slots__ = ("_hash", "error", "expressions", "fields")

    error: SelectorError | None
    """Why the term cannot be read, and so matches no node; None for a sound one."""

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
        """Whether the node meets the term."""
        if self.error is not None or not (self.expressions or self.fields):
            return False
        labels = node.metadata.labels
        if not all(wanted.matches(labels) for wanted in self.expressions):
            return False
        return not self.fields or self._fields_match(node.metadata.name)

    def _fields_match(self, name: str) -> bool:
        # A nameless node has no fields to look at; a field that nodes do not have reads as empty.
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
    """Terms of which one must match; none match no node. The order of terms does not matter."""

    __slots__ = ("_key", "errors", "terms")

    def __init__(self, terms: Iterable[NodeTermMatcher]) -> None:
        self.terms = tuple(terms)
        self.errors = tuple(term.error for term in self.terms if term.error is not None)
        self._key = frozenset(self.terms)

    def matches(self, node: Node) -> bool:
        """Whether one of the terms matches the node."""
        return any(term.matches(node) for term in self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSelectorMatcher) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"NodeSelectorMatcher({self.terms!r})"


def compile_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """A node selector ready to match; what cannot be read is in `errors` and matches nothing."""
    return NodeSelectorMatcher(compile_node_term(term) for term in selector.node_selector_terms)


def compile_node_term(term: NodeSelectorTerm) -> NodeTermMatcher:
    """One term ready to match; what cannot be read is in `error` and matches nothing."""
    try:
        expressions = [requirement(e.key, e.operator, e.values) for e in term.match_expressions]
        fields = [_field_requirement(field) for field in term.match_fields]
    except SelectorError as error:
        return NodeTermMatcher((), (), error)
    return NodeTermMatcher(expressions, fields)


def _field_requirement(wanted: NodeSelectorRequirement) -> Requirement:
    if wanted.operator not in {"In", "NotIn"}:
        raise SelectorError(wanted.key, wanted.values, "matchFields knows only In and NotIn")
    if len(wanted.values) != 1:
        raise SelectorError(wanted.key, wanted.values, "matchFields needs exactly one value")
    return Requirement(wanted.key, wanted.operator, tuple(wanted.values))
