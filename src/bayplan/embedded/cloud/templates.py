"""What a node of a group will look like, before there is one: an autoscaler plans with it."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.nodes.machines import Instance, NodeGroup
from bayplan.embedded.nodes.objects import NOT_READY, conditions, node_object


class Template(NamedTuple):
    """A node of a group that is ready, and its CSINode with every driver that will be there."""

    node: JsonObject
    csi_node: JsonObject


def template(group: NodeGroup, name: str, now: str, zone: str = "") -> Template:
    """A group's template under a name of the caller's choice, in its first zone or a given one."""
    instance = Instance(name, group, zone or group.zones[0], 0.0, None)
    node = node_object(instance, now)
    del node["spec"]["providerID"]
    node["spec"]["taints"] = [one for one in node["spec"]["taints"] if one["key"] != NOT_READY]
    node["status"]["conditions"] = conditions(now, ready=True)
    drivers = [
        _driver(driver, settings.limit, name)
        for driver, settings in sorted(group.drivers.items())
        if settings.registers
    ]
    return Template(node, {"metadata": {"name": name}, "spec": {"drivers": drivers}})


def _driver(name: str, limit: int | None, node: str) -> JsonObject:
    entry: JsonObject = {"name": name, "nodeID": node}
    if limit is not None:
        entry["allocatable"] = {"count": limit}
    return entry
