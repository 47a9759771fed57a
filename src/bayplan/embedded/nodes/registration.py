"""Nodes register, become ready, and are deleted with their machines."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    Delete,
    Plan,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.view import LEASES, NODES
from bayplan.embedded.nodes.fleet import Fleet, SimulatedMachine
from bayplan.embedded.nodes.machines import SimulatedInstance, instance_of
from bayplan.kube.times import micro_time

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_WELL = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}


def node_object(instance: SimulatedInstance, now: str) -> JsonObject:
    """Return a new node that is not ready yet."""
    group = instance.group
    taints: list[JsonObject] = [{"key": NOT_READY, "effect": "NoSchedule"}]
    for taint in group.taints:
        value = {"value": taint.value} if taint.value else {}
        taints.append({"key": taint.key, "effect": taint.effect, **value})
    return {
        "metadata": {
            "name": instance.name,
            "labels": group.node_labels(instance.name, instance.zone),
        },
        "spec": {"providerID": instance.provider_id, "taints": taints},
        "status": {
            "capacity": group.instance_type.capacity(),
            "allocatable": group.node_allocatable(),
            "conditions": conditions(now, ready=False),
            "addresses": [{"type": "Hostname", "address": instance.name}],
            "nodeInfo": _info(instance.name),
        },
    }


def conditions(now: str, *, ready: bool) -> list[JsonObject]:
    """Return the conditions of a node whose kubelet works."""
    found = [_condition(type_, "False", _WELL[type_], now) for type_ in _PRESSURES]
    reason = "KubeletReady" if ready else "KubeletNotReady"
    return [*found, _condition("Ready", "True" if ready else "False", reason, now)]


def unknown_conditions(now: str) -> list[JsonObject]:
    """Return the conditions of an unreachable node."""
    reason = "NodeStatusUnknown"
    message = "Kubelet stopped posting node status."
    return [_condition(type_, "Unknown", reason, now, message) for type_ in (*_PRESSURES, "Ready")]


def condition_status(node: JsonObject, type_: str) -> str:
    """Return True, False or Unknown; empty without the condition."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type_:
            return str(condition.get("status"))
    return ""


def with_conditions(node: JsonObject, wanted: list[JsonObject]) -> JsonObject:
    """Return the node with these conditions; unchanged ones keep their transition time."""
    status = node.setdefault("status", {})
    before = {one["type"]: one for one in status.get("conditions") or ()}
    for one in wanted:
        old = before.get(one["type"])
        if old is not None and old.get("status") == one["status"]:
            one["lastTransitionTime"] = old.get("lastTransitionTime")
    known = {one["type"] for one in wanted}
    others = [one for one in before.values() if one["type"] not in known]
    status["conditions"] = [*others, *wanted]
    return node


def lease_object(node: str, uid: str, renewed: str) -> JsonObject:
    """Return the lease of a node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "metadata": {"name": node, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": renewed,
        },
    }


def _condition(type_: str, status: str, reason: str, now: str, message: str = "") -> JsonObject:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message or f"kubelet reports {reason}",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _info(name: str) -> JsonObject:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "simulated",
        "osImage": "Bayplan simulation",
        "containerRuntimeVersion": "simulated://1",
        "kubeletVersion": "v1.35.0",
        "kubeProxyVersion": "v1.35.0",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


READY_SECONDS = 2.0
"""Seconds from registration to readiness: the network plugin and the like."""


class NodeRegistration(Controller[str]):
    """Registers nodes; keyed by node name."""

    name = "kubelet"
    storages = (NODES,)

    def __init__(self, context: ControllerContext, fleet: Fleet) -> None:
        self._context = context
        self._fleet = fleet

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return the node's name."""
        return (change.entry.key.name,)

    def decide(self, key: str) -> Plan:
        """Register, report, or clean up."""
        node = self._context.view.get(NODES, "", key)
        machine = self._fleet.find(key)
        if machine is None:
            return _clean_up(key, node)
        if not machine.is_up:
            return []
        if node is None:
            return self._register(machine)
        machine.registered = True
        return self._report(machine, node) + self._ensure_lease(key, node)

    def _register(self, machine: SimulatedMachine) -> Plan:
        if machine.registered:
            return []
        return [Create(NODES, node_object(machine.instance, self._context.now()))]

    def _report(self, machine: SimulatedMachine, node: JsonObject) -> Plan:
        status = condition_status(node, "Ready")
        if status == "True":
            return []
        left = moment(node["metadata"]["creationTimestamp"]) + READY_SECONDS
        left -= self._context.seconds()
        if left > 0:
            return [RequeueAfter(left)]
        now, key = self._context.now(), ObjectKey(NODES, "", machine.name)

        def ready(obj: JsonObject) -> JsonObject:
            return with_conditions(obj, conditions(now, ready=True))

        message = f"Node {machine.name} status is now: NodeReady"
        return [
            Update(key, ready, "status"),
            RecordEvent(key, "NodeReady", message, source="kubelet"),
        ]

    def _ensure_lease(self, name: str, node: JsonObject) -> Plan:
        if self._context.view.store.get(ObjectKey(LEASES, LEASE_NAMESPACE, name)) is not None:
            return []
        renewed = micro_time(self._context.clock.now())
        return [Create(LEASES, lease_object(name, node["metadata"]["uid"], renewed))]


def _clean_up(name: str, node: JsonObject | None) -> Plan:
    """Delete a node whose machine is gone; a node that was created by hand stays."""
    found = None if node is None else instance_of((node.get("spec") or {}).get("providerID") or "")
    if node is None or found is None or found[1] != name:
        return []
    return [Delete(ObjectKey(NODES, "", name), node["metadata"]["uid"])]
