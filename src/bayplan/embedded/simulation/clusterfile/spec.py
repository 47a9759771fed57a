"""What a cluster file says, in the terms of the parts that are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.csi.drivers import Driver
from bayplan.embedded.nodes.machines import NodeGroup


@dataclass(frozen=True, slots=True)
class StorageClassSpec:
    """A storage class to create."""

    name: str
    driver: Driver
    binding: str
    reclaim: str
    default: bool
    zones: tuple[str, ...]

    def storage_class(self) -> JsonObject:
        """The StorageClass object."""
        meta: JsonObject = {"name": self.name}
        if self.default:
            meta["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        obj: JsonObject = {
            "metadata": meta,
            "provisioner": self.driver.name,
            "volumeBindingMode": self.binding,
            "reclaimPolicy": self.reclaim,
        }
        if self.zones:
            wanted = {"key": self.driver.topology_key, "values": list(self.zones)}
            obj["allowedTopologies"] = [{"matchLabelExpressions": [wanted]}]
        return obj


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """A fault and when it comes and goes, in seconds from the start."""

    name: str
    fault: Fault
    at: float
    until: float | None


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Objects to create at a moment, or many copies of them over a while."""

    place: str
    """Where in the file it stands, for errors."""
    objects: tuple[JsonObject, ...]
    at: float = 0.0
    count: int = 0
    """How many copies arrive; 0 for the objects themselves."""
    over: float = 0.0
    random: bool = True


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A whole cluster."""

    source: str = "cluster"
    seed: int = 1
    drivers: dict[str, Driver] = field(default_factory=dict)
    classes: tuple[StorageClassSpec, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    faults: tuple[ScheduledFault, ...] = ()
    workloads: tuple[WorkloadSpec, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)
    """The lines of the workloads' places."""
