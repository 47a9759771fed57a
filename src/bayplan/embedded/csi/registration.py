"""Registration of CSI drivers on nodes, with their attach limits, in CSINode.

The kubelet creates an empty CSINode as soon as the node exists; each driver of the node's group is
added after its delay, with or without a limit, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    Edit,
    Plan,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.view import CSI_NODES, NODES
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.embedded.nodes.machines import GroupDriver, SimulatedInstance


class DriverRegistration(Controller[str]):
    """Registers CSI drivers; keyed by node."""

    name = "csi-registration"
    storages = (NODES, CSI_NODES)

    def __init__(
        self, context: ControllerContext, fleet: Fleet, drivers: Mapping[str, Driver]
    ) -> None:
        self._context = context
        self._fleet = fleet
        self._drivers = drivers

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return new nodes, and changed CSINodes."""
        created = change.previous is None or change.entry.key.storage == CSI_NODES
        return (change.entry.key.name,) if created else ()

    def decide(self, key: str) -> Plan:
        """Create the CSINode, or add the drivers that are due."""
        machine = self._fleet.working(key)
        node = self._context.view.get(NODES, "", key)
        if machine is None or node is None:
            return []
        found = self._context.view.get(CSI_NODES, "", key)
        if found is None:
            return [Create(CSI_NODES, _csi_node(key, node["metadata"]["uid"]))]
        present = {one["name"] for one in found["spec"].get("drivers") or ()}
        return self._add_missing(machine.instance, node, present)

    def _add_missing(
        self, instance: SimulatedInstance, node: JsonObject, present: set[str]
    ) -> Plan:
        plan: Plan = []
        waits: list[float] = []
        for name, settings in sorted(instance.group.drivers.items()):
            if name in present or not settings.registers or self._is_withheld(instance, name):
                continue
            left = moment(node["metadata"]["creationTimestamp"]) + settings.delay
            left -= self._context.seconds()
            if left > 0:
                waits.append(left)
            else:
                plan += self._add(instance.name, self._drivers[name], settings, instance.zone)
        return [*plan, RequeueAfter(min(waits))] if waits else plan

    def _is_withheld(self, instance: SimulatedInstance, driver: str) -> bool:
        about = {"node": instance.name, "group": instance.group.name, "driver": driver}
        return self._context.faults.find("no-driver", zone=instance.zone, **about) is not None

    def _add(self, node: str, driver: Driver, settings: GroupDriver, zone: str) -> Plan:
        plan: Plan = [
            Update(ObjectKey(CSI_NODES, "", node), _with_driver(node, driver, settings.limit))
        ]
        if driver.topology_key:
            plan.append(Update(ObjectKey(NODES, "", node), _with_topology(driver, zone)))
        return plan


def _csi_node(name: str, uid: str) -> JsonObject:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"drivers": []}}


def _with_driver(node: str, driver: Driver, limit: int | None) -> Edit:
    entry: JsonObject = {"name": driver.name, "nodeID": node, "topologyKeys": None}
    if driver.topology_key:
        entry["topologyKeys"] = [driver.topology_key]
    if limit is not None:
        entry["allocatable"] = {"count": limit}

    def edit(obj: JsonObject) -> JsonObject:
        others = [one for one in obj["spec"].get("drivers") or () if one["name"] != driver.name]
        obj["spec"]["drivers"] = [*others, entry]
        return obj

    return edit


def _with_topology(driver: Driver, zone: str) -> Edit:
    def edit(obj: JsonObject) -> JsonObject:
        obj["metadata"].setdefault("labels", {}).setdefault(driver.topology_key, zone)
        return obj

    return edit
