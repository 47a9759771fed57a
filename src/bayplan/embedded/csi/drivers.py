"""A CSI driver: how fast it works, and where its volumes can be used."""

from __future__ import annotations

import msgspec


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """One driver of the cluster."""

    name: str
    topology_key: str = "topology.kubernetes.io/zone"
    """Volumes can be used where this label has the same value; empty: everywhere."""
    provision_seconds: float = 2.0
    attach_seconds: float = 3.0
    detach_seconds: float = 2.0
    attach_required: bool = True

    def csi_driver(self) -> dict[str, object]:
        """Its CSIDriver object."""
        spec = {"attachRequired": self.attach_required}
        return {"metadata": {"name": self.name}, "spec": spec}
