"""Node templates of groups, with which an autoscaler plans.

A template is a ready and empty node in the group's first zone. It has the attach limits of all its
drivers in the annotation that autoscalers know.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.machines import SimulatedInstance, SimulatedNodeGroup
from bayplan.embedded.nodes.registration import NOT_READY, conditions, node_object
from bayplan.kube.nodes import Node
from bayplan.nodegroups import CSI_DRIVERS, TemplateNodeInfo, limits_text, template_of

_NEVER = "1970-01-01T00:00:00Z"


def template(
    group: SimulatedNodeGroup, drivers: Mapping[str, Driver], name: str = ""
) -> TemplateNodeInfo:
    """Return a group's template, with the given name."""
    zone = group.zones[0]
    node = node_object(
        SimulatedInstance(name or f"{group.name}-template", group, zone, 0.0, None), _NEVER
    )
    del node["spec"]["providerID"]
    node["spec"]["taints"] = [one for one in node["spec"]["taints"] if one["key"] != NOT_READY]
    node["status"]["conditions"] = [_timeless(one) for one in conditions(_NEVER, ready=True)]
    coming = {name: one.limit for name, one in group.drivers.items() if one.registers}
    for driver in coming:
        if drivers[driver].topology_key:
            node["metadata"]["labels"].setdefault(drivers[driver].topology_key, zone)
    node["metadata"]["annotations"] = {CSI_DRIVERS: limits_text(coming)}
    node["status"].pop("nodeInfo", None)  # the kubelet's version is only known once the node exists
    return template_of(msgspec.convert({"apiVersion": "v1", "kind": "Node", **node}, Node))


def _timeless(condition: JsonObject) -> JsonObject:
    return {name: value for name, value in condition.items() if not name.endswith("Time")}
