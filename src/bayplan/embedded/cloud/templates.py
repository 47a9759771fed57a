"""What a node of a group will look like, before there is one: an autoscaler plans with it.

It is a node that is ready and empty, in the group's first zone, and it carries the limits of every
driver that will be there as the annotation that autoscalers know.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.machines import Instance, NodeGroup
from bayplan.embedded.nodes.registration import NOT_READY, conditions, node_object
from bayplan.kube.nodes import Node
from bayplan.nodegroups import CSI_DRIVERS, TemplateNodeInfo, limits_text, template_of

_NEVER = "1970-01-01T00:00:00Z"


def template(group: NodeGroup, drivers: Mapping[str, Driver], name: str = "") -> TemplateNodeInfo:
    """A group's template, under a name of the caller's choice."""
    zone = group.zones[0]
    node = node_object(Instance(name or f"{group.name}-template", group, zone, 0.0, None), _NEVER)
    del node["spec"]["providerID"]
    node["spec"]["taints"] = [one for one in node["spec"]["taints"] if one["key"] != NOT_READY]
    node["status"]["conditions"] = [_timeless(one) for one in conditions(_NEVER, ready=True)]
    coming = {name: one.limit for name, one in group.drivers.items() if one.registers}
    for driver in coming:
        if drivers[driver].topology_key:
            node["metadata"]["labels"].setdefault(drivers[driver].topology_key, zone)
    node["metadata"]["annotations"] = {CSI_DRIVERS: limits_text(coming)}
    node["status"].pop("nodeInfo", None)  # which version its kubelet has, it says when it is there
    return template_of(msgspec.convert({"apiVersion": "v1", "kind": "Node", **node}, Node))


def _timeless(condition: JsonObject) -> JsonObject:
    return {name: said for name, said in condition.items() if not name.endswith("Time")}
