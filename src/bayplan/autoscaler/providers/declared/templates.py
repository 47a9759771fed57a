"""Applies a declaration to a group: sizes, template and options, its own or a provider's.

The declaration overrides the provider's labels, resources, taints and drivers of the same name;
others are kept. Sizes can only be narrowed, since the cloud would refuse others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from bayplan.autoscaler.providers.declared.declaration import Declaration, TemplateDescription
from bayplan.autoscaler.providers.descriptions import GROUP, merged_taints, template_node
from bayplan.kube.nodes import Node, NodeSpec, NodeStatus
from bayplan.kube.resources import CPU, MEMORY
from bayplan.kube.storage import CSINode
from bayplan.nodegroups import (
    CSI_DRIVERS,
    CloudNodeGroup,
    NodeRef,
    TemplateNodeInfo,
    UnimplementedError,
    limits_text,
)
from bayplan.nodegroups.prices import InstanceTypePrice
from bayplan.nodegroups.templates import Limits, build_csi_node, csi_limits

MOST_NODES = 1000
"""The maximum size of a group without a declared one."""


def group_of(declaration: Declaration) -> CloudNodeGroup:
    """Return the group of a declaration alone."""
    least = declaration.min_size or 0
    most = max(least, MOST_NODES) if declaration.max_size is None else declaration.max_size
    return CloudNodeGroup(declaration.group, least, most, "declared")


def within_declared(group: CloudNodeGroup, declaration: Declaration) -> CloudNodeGroup:
    """Return a provider's group with the declared sizes, as far as within its own."""
    least = max(group.min_size, declaration.min_size or 0)
    most = (
        group.max_size
        if declaration.max_size is None
        else min(group.max_size, declaration.max_size)
    )
    return replace(group, min_size=min(least, most), max_size=most)


def template_from(declaration: Declaration) -> TemplateNodeInfo:
    """Build the template of a declaration alone; UnimplementedError if it lacks cpu or memory."""
    described = declaration.description
    missing = [name for name in (CPU, MEMORY) if name not in _amounts(described)]
    if missing:
        raise UnimplementedError(
            f"node group {declaration.group}: its declaration has no {missing[0]}"
        )
    node = template_node(declaration.group, described.labels, described.taints, _amounts(described))
    return overlay_template(TemplateNodeInfo(node), declaration)


def overlay_template(template: TemplateNodeInfo, declaration: Declaration) -> TemplateNodeInfo:
    """Overlay a declaration on a provider's template."""
    limits = _limits(template.csi_node, declaration)
    node = _node(template.node, declaration, limits)
    csi_node = None if limits is None else build_csi_node(node.name, limits)
    declared = frozenset((*(declaration.limits or ()), *declaration.unread))
    return TemplateNodeInfo(node, csi_node, template.problems, template.estimated - declared)


def _limits(found: CSINode | None, declaration: Declaration) -> Limits | None:
    """Return the limits by driver; None if the drivers are unknown."""
    if found is None and declaration.limits is None:
        return None
    limits = csi_limits(found) | (declaration.limits or {})
    return {name: count for name, count in limits.items() if name not in declaration.unread}


def _node(node: Node, declaration: Declaration, limits: Limits | None) -> Node:
    described = declaration.description
    meta = msgspec.structs.replace(
        node.metadata,
        labels={**node.metadata.labels, **described.labels},
        annotations={**node.metadata.annotations, GROUP: declaration.group, **_annotations(limits)},
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
    """Return the annotation with the limits, for readers of the Node alone."""
    return {} if limits is None else {CSI_DRIVERS: limits_text(limits)}


def _amounts(described: TemplateDescription) -> dict[str, str | int | float]:
    """Return the declared allocatable, or else the capacity."""
    return {**described.capacity, **described.allocatable}


def price_of(
    node: NodeRef, own: Declaration | None, declaration: Mapping[str, Declaration]
) -> float | None:
    """Return the declared hourly price of a node; None if there is none."""
    found = own or declaration.get(node.annotations.get(GROUP, ""))
    return None if found is None else found.price


def declared_types(declarations: Iterable[Declaration]) -> Iterator[InstanceTypePrice]:
    """Yield the instance types whose price and size are declared."""
    for one in declarations:
        if one.price is None:
            continue
        try:
            yield InstanceTypePrice(one.price, template_from(one).node.status.allocatable)
        except UnimplementedError:
            continue
