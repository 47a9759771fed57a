"""Checks of nodes."""

from __future__ import annotations

from bayplan.kube.names import is_label_value
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.validation import fields
from bayplan.kube.validation.fields import each, need


def check_node(node: Node) -> None:
    """Check a node."""
    fields.amounts("status.capacity", node.status.capacity)
    fields.amounts("status.allocatable", node.status.allocatable)
    each("spec.taints", _taint, node.spec.taints)


def _taint(taint: Taint) -> None:
    fields.label_key("key", taint.key)
    need(is_label_value(taint.value), "value", taint.value, "not a label value")
