"""Checks of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.meta import Quantity
from bayplan.kube.names import is_label_value
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.quantity import QuantityError, parse
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.validation import fields
from bayplan.kube.validation.fields import FieldError, each, need


def check_node(node: Node) -> None:
    """Check a node."""
    for name in ("capacity", "allocatable"):
        _amounts(f"status.{name}", getattr(node.status, name))
    each("spec.taints", _taint, node.spec.taints)


def _amounts(field: str, written: Mapping[str, Quantity]) -> None:
    """Check amounts; attach limits need only parse, since readers of limits skip invalid ones.

    A node with an invalid limit stays usable.
    """
    limits = {name: amount for name, amount in written.items() if is_attach_limit(name)}
    if not limits:
        fields.amounts(field, written)
        return
    fields.amounts(field, {name: amount for name, amount in written.items() if name not in limits})
    for name, amount in limits.items():
        try:
            parse(amount)
        except QuantityError as error:
            raise FieldError(f"{field}.{name[:80]}", amount, str(error)) from None


def _taint(taint: Taint) -> None:
    fields.label_key("key", taint.key)
    need(is_label_value(taint.value), "value", taint.value, "not a label value")
