"""What declared groups cost.

A node is known to be of a group by the group's own word on it, or, if it is only a template, by the
name that its template was given here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bayplan.autoscaler.providers.declared.applying import template_from
from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.describing import GROUP
from bayplan.nodegroups import NodeRef, NotOfferedError
from bayplan.nodegroups.pricing import Machine


def price_of(
    node: NodeRef, own: Declaration | None, said: Mapping[str, Declaration]
) -> float | None:
    """What a node costs an hour; None if it is not declared."""
    found = own or said.get(node.annotations.get(GROUP, ""))
    return None if found is None else found.price


def declared_machines(declarations: Iterable[Declaration]) -> Iterator[Machine]:
    """The machines of which both price and size are declared."""
    for one in declarations:
        if one.price is None:
            continue
        try:
            yield Machine(one.price, template_from(one).node.status.allocatable)
        except NotOfferedError:
            continue
