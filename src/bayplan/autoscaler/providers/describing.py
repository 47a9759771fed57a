"""Nodes that are not there yet, from what a cloud says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bayplan.kube.labels import HOSTNAME
from bayplan.kube.meta import Condition, ObjectMeta, Quantity
from bayplan.kube.nodes import Node, NodeSpec, NodeStatus, Taint
from bayplan.kube.resources import PODS

GROUP = "bayplan.io/node-group"
"""Annotation of a template: the group that it is of."""
MAX_PODS = 110
"""What a kubelet takes unless it is told otherwise."""
_LONGEST_NAME = 200
_NOT_OF_NAMES = re.compile(r"[^a-z0-9.-]+")


def described_node(
    group: str,
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    amounts: Mapping[str, Quantity],
    *,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """A node of a group, ready and empty."""
    name = f"template-node-for-{_NOT_OF_NAMES.sub('-', group.lower())[:_LONGEST_NAME]}"
    held: dict[str, Quantity] = {PODS: MAX_PODS, **amounts}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            labels={HOSTNAME: name, **labels},
            annotations={GROUP: group, **(annotations or {})},
        ),
        spec=NodeSpec(taints=list(taints)),
        status=NodeStatus(
            capacity=held,
            allocatable=dict(held),
            conditions=[Condition(type="Ready", status="True", reason="Template")],
        ),
    )


def merged_taints(taints: Iterable[Taint], over: Iterable[Taint]) -> list[Taint]:
    """Taints, of which each key and effect is there once; the later ones count."""
    merged = {(one.key, one.effect): one for one in (*taints, *over)}
    return list(merged.values())
