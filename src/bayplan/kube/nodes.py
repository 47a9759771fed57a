"""Nodes and node selectors."""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import Condition, KubeObject, Quantity, Size, Struct, Weight

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Struct):
    """A taint that keeps pods off a node unless they tolerate it."""

    key: str
    effect: TaintEffect
    value: str = ""


class ContainerImage(Struct):
    """An image that is present on a node."""

    names: list[str] = []
    size_bytes: Size = 0


class NodeSpec(Struct):
    """The spec of a node."""

    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeSystemInfo(Struct):
    """Versions that a kubelet reports."""

    kubelet_version: str = ""


class NodeStatus(Struct):
    """The status of a node."""

    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: list[Condition] = []
    images: list[ContainerImage] = []
    node_info: NodeSystemInfo | None = None
    declared_features: list[str] = []


class Node(KubeObject):
    """A machine that runs pods."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class NodeSelectorRequirement(Struct):
    """One expression of a node selector term."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class NodeSelectorTerm(Struct):
    """Expressions that must all hold; a term without any matches nothing."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(Struct):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm]


class PreferredSchedulingTerm(Struct):
    """A node selector term that adds to a node's score."""

    weight: Weight
    preference: NodeSelectorTerm
