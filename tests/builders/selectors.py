"""Selectors in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bayplan.kube.meta import LabelSelector, LabelSelectorRequirement
from bayplan.kube.nodes import NodeSelectorRequirement, NodeSelectorTerm

NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
LabelOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


def selector(labels: Mapping[str, str] | None = None, **more: str) -> LabelSelector:
    """A label selector of plain labels: `selector(app="web")`."""
    return LabelSelector(match_labels={**(labels or {}), **more})


def expression(key: str, operator: LabelOperator, *values: str) -> LabelSelector:
    """A label selector of one expression: `expression("app", "In", "web", "db")`."""
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=list(values))
    return LabelSelector(match_expressions=[requirement])


def node_term(key: str, operator: NodeOperator, *values: str) -> NodeSelectorTerm:
    """A node selector term of one expression."""
    requirement = NodeSelectorRequirement(key=key, operator=operator, values=list(values))
    return NodeSelectorTerm(match_expressions=[requirement])


def name_term(*names: str) -> NodeSelectorTerm:
    """A node selector term on the node's name."""
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=list(names))
    return NodeSelectorTerm(match_fields=[requirement])
