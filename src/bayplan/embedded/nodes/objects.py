"""The Node and the Lease that a kubelet registers, and the conditions it reports."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.nodes.machines import Instance

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


def node_object(instance: Instance, now: str) -> JsonObject:
    """A node that has just registered and is not ready yet."""
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
    """What a kubelet that works says of itself."""
    found = [_condition(type_, "False", _WELL[type_], now) for type_ in _PRESSURES]
    reason = "KubeletReady" if ready else "KubeletNotReady"
    return [*found, _condition("Ready", "True" if ready else "False", reason, now)]


def unknown_conditions(now: str) -> list[JsonObject]:
    """What is known of a node that has not been heard of."""
    reason = "NodeStatusUnknown"
    said = "Kubelet stopped posting node status."
    return [_condition(type_, "Unknown", reason, now, said) for type_ in (*_PRESSURES, "Ready")]


def condition_status(node: JsonObject, type_: str) -> str:
    """True, False or Unknown; empty if the node says nothing of it."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type_:
            return str(condition.get("status"))
    return ""


def with_conditions(node: JsonObject, wanted: list[JsonObject]) -> JsonObject:
    """The node with these conditions; one that stays as it was keeps its time."""
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
    """The lease by which a kubelet says that it is alive."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "metadata": {"name": node, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": renewed,
        },
    }


def _condition(type_: str, status: str, reason: str, now: str, said: str = "") -> JsonObject:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": said or f"kubelet reports {reason}",
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
