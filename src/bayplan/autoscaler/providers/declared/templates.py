"""What a declaration makes of a group: bounds, template and options, its own or over a cloud's.

Where both say something of the same label, resource, taint or driver, the declaration counts; what
it does not name stays as the cloud has it. Bounds can only be drawn closer, since the cloud would
refuse what is beyond its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from bayplan.autoscaler.providers.declared.declaration import Declaration, Description
from bayplan.autoscaler.providers.descriptions import GROUP, described_node, merged_taints
from bayplan.kube.nodes import Node, NodeSpec, NodeStatus
from bayplan.kube.resources import CPU, MEMORY
from bayplan.kube.storage import CSINode
from bayplan.nodegroups import (
    CSI_DRIVERS,
    NodeGroup,
    NodeRef,
    NotOfferedError,
    TemplateNodeInfo,
    limits_text,
)
from bayplan.nodegroups.pricing import Machine
from bayplan.nodegroups.templates import Limits, csi_limits, csi_node_of

MOST_NODES = 1000
"""The maximum of a group of which nobody says any."""


def group_of(said: Declaration) -> NodeGroup:
    """A group that only its declaration knows of."""
    least = said.min_size or 0
    most = max(least, MOST_NODES) if said.max_size is None else said.max_size
    return NodeGroup(said.group, least, most, "declared")


def narrowed(group: NodeGroup, said: Declaration) -> NodeGroup:
    """A cloud's group between the bounds that are declared, as far as they are within its own."""
    least = max(group.min_size, said.min_size or 0)
    most = group.max_size if said.max_size is None else min(group.max_size, said.max_size)
    return replace(group, min_size=min(least, most), max_size=most)


def template_from(said: Declaration) -> TemplateNodeInfo:
    """The template of a group that only its declaration knows; NotOfferedError if it has none."""
    described = said.description
    missing = [name for name in (CPU, MEMORY) if name not in _amounts(described)]
    if missing:
        raise NotOfferedError(f"node group {said.group}: its declaration says no {missing[0]}")
    node = described_node(said.group, described.labels, described.taints, _amounts(described))
    return laid_over(TemplateNodeInfo(node), said)


def laid_over(template: TemplateNodeInfo, said: Declaration) -> TemplateNodeInfo:
    """A cloud's template with what is declared."""
    limits = _limits(template.csi_node, said)
    node = _node(template.node, said, limits)
    csi_node = None if limits is None else csi_node_of(node.name, limits)
    return TemplateNodeInfo(node, csi_node, template.problems)


def _limits(found: CSINode | None, said: Declaration) -> Limits | None:
    """By driver; None if nobody says anything of drivers."""
    if found is None and said.limits is None:
        return None
    limits = csi_limits(found) | (said.limits or {})
    return {name: count for name, count in limits.items() if name not in said.unread}


def _node(node: Node, said: Declaration, limits: Limits | None) -> Node:
    described = said.description
    meta = msgspec.structs.replace(
        node.metadata,
        labels={**node.metadata.labels, **described.labels},
        annotations={**node.metadata.annotations, GROUP: said.group, **_annotations(limits)},
    )
    taints = merged_taints(node.spec.taints, described.taints)
    spec: NodeSpec = msgspec.structs.replace(node.spec, taints=taints)
    capacity = {**node.status.capacity, **described.capacity}
    allocatable = {**node.status.allocatable, **_amounts(described)}
    status: NodeStatus = msgspec.structs.replace(
        node.status, capacity=capacity, allocatable=allocatable
    )
    return msgspec.structs.replace(node, metadata=meta, spec=spec, status=status)


def _annotations(limits: Limits | None) -> Mapping[str, str]:
    """Whoever reads the Node alone finds the limits in it as well."""
    return {} if limits is None else {CSI_DRIVERS: limits_text(limits)}


def _amounts(described: Description) -> dict[str, str | int | float]:
    """What is said to be allocatable, or else the capacity."""
    return {**described.capacity, **described.allocatable}


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
