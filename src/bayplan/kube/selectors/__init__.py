"""Selectors, compiled: immutable, canonical and hashable, so that equal ones are one dict key.

A label selector is a sorted tuple of requirements that must all hold; a node selector is a set of
terms of which one must. Canonical means that order and repetition do not matter, and that
`matchLabels: {a: b}` equals `a In [b]`; it does not mean that every two selectors that happen to
match the same labels are equal.

No label selector (None) matches nothing; an empty one matches everything, as in Kubernetes.
"""

from bayplan.kube.selectors.labels import (
    EVERYTHING,
    NOTHING,
    Selector,
    compile_selector,
    selector_from_labels,
)
from bayplan.kube.selectors.nodes import (
    NodeSelectorMatcher,
    NodeTermMatcher,
    compile_node_selector,
    compile_node_term,
)
from bayplan.kube.selectors.requirement import Operator, Requirement, SelectorError, requirement

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "NodeSelectorMatcher",
    "NodeTermMatcher",
    "Operator",
    "Requirement",
    "Selector",
    "SelectorError",
    "compile_node_selector",
    "compile_node_term",
    "compile_selector",
    "requirement",
    "selector_from_labels",
]
