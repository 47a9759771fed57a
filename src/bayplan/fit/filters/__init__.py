"""Predicates: each says of every node at once whether it may take a pod, and why one may not.

`PROFILE` names them in kube-scheduler's order. A filter that has nothing to say of a pod is not
there for it: its compile function gives None.
"""

from __future__ import annotations

from bayplan.fit.filters import (
    dynamic_resources,
    inter_pod_affinity,
    named_nodes,
    node_affinity,
    node_name,
    node_ports,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from bayplan.fit.filters.base import Arrival, Filter, Question, Reads
from bayplan.fit.filters.waiting import Hints
from bayplan.fit.refusal import Refusal

__all__ = [
    "BEFORE_NODES",
    "HINTS",
    "PROFILE",
    "Arrival",
    "Filter",
    "Question",
    "Reads",
    "compile_filters",
    "refusal_before_nodes",
]

PROFILE = (
    (node_affinity.NAME, named_nodes.compile_filter),
    (node_unschedulable.NAME, node_unschedulable.compile_filter),
    (node_name.NAME, node_name.compile_filter),
    (taint_toleration.NAME, taint_toleration.compile_filter),
    (node_affinity.NAME, node_affinity.compile_added),
    (node_affinity.NAME, node_affinity.compile_filter),
    (node_ports.NAME, node_ports.compile_filter),
    (node_resources_fit.NAME, node_resources_fit.compile_filter),
    (volume_restrictions.NAME, volume_restrictions.compile_filter),
    (node_volume_limits.NAME, node_volume_limits.compile_filter),
    (volume_binding.NAME, volume_binding.compile_filter),
    (volume_zone.NAME, volume_zone.compile_filter),
    (pod_topology_spread.NAME, pod_topology_spread.compile_filter),
    (inter_pod_affinity.NAME, inter_pod_affinity.compile_filter),
    (dynamic_resources.NAME, dynamic_resources.compile_filter),
)
ALWAYS = frozenset({dynamic_resources.NAME})
"""What no set of plugins can leave out."""


BEFORE_NODES = (
    (dynamic_resources.NAME, dynamic_resources.refusal_before_all),
    (node_affinity.NAME, node_affinity.refusal_before_nodes),
    (volume_restrictions.NAME, volume_restrictions.refusal_before_nodes),
    (volume_binding.NAME, volume_binding.refusal_before_nodes),
    (volume_zone.NAME, volume_zone.refusal_before_nodes),
    (dynamic_resources.NAME, dynamic_resources.refusal_before_nodes),
)
"""The plugins that may refuse a pod before any node is looked at, in kube-scheduler's order."""


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """The first refusal of a pod whatever node it is; None if nodes are to be asked."""
    asked = arrival.plugins.filters | ALWAYS
    refusals = (refuse(arrival) for name, refuse in BEFORE_NODES if name in asked)
    return next((one for one in refusals if one is not None), None)


HINTS: dict[str, Hints] = {
    module.NAME: module.HINTS
    for module in (
        node_unschedulable,
        node_name,
        taint_toleration,
        node_affinity,
        node_ports,
        node_resources_fit,
        volume_restrictions,
        node_volume_limits,
        volume_binding,
        volume_zone,
        pod_topology_spread,
        inter_pod_affinity,
        dynamic_resources,
    )
}
"""By plugin, the changes that may help a pod that it refused."""


def compile_filters(question: Question) -> tuple[Filter, ...]:
    """The filters that have something to say of a pod, in the order in which they are asked."""
    asked = question.plugins.filters | ALWAYS
    compiled = (compile_filter(question) for name, compile_filter in PROFILE if name in asked)
    return tuple(one for one in compiled if one is not None)
