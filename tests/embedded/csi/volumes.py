"""Volumes that tests create themselves, without a provisioner."""

from __future__ import annotations

from typing import Any


def volume_by_hand(name: str, size: str = "1Gi", zone: str = "", **spec: Any) -> dict[str, Any]:
    """Return a PersistentVolume of the class `by-hand`, reachable in one zone if one is named."""
    made: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": "by-hand",
        "hostPath": {"path": "/"},
        **spec,
    }
    if zone:
        wanted = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        terms = [{"matchExpressions": [wanted]}]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": made}
