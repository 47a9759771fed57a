"""The sections `csiDrivers` and `storageClasses`: their fields and objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bayplan.base.configfiles import FieldProblem
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.csi.volumes import Driver
from bayplan.kube.configvalues import (
    Duration,
    Name,
    Section,
    check_unique,
    look_up,
    seconds,
)
from bayplan.kube.names import is_qualified_name


class DriverSection(Section):
    """A CSI driver."""

    name: Name
    topology_key: str = "topology.kubernetes.io/zone"
    """Topology label of its volumes; empty for volumes that are accessible everywhere."""
    provision: Duration = 2
    """Time to provision a volume."""
    attach: Duration = 3
    """Time to attach a volume."""
    detach: Duration = 2
    """Time to detach a volume."""
    attach_required: bool = True
    """Whether volumes have to be attached."""

    def driver(self, path: str) -> Driver:
        """Return the driver."""
        if self.topology_key and not is_qualified_name(self.topology_key):
            raise FieldProblem(
                f"{path}.topologyKey", f"{self.topology_key!r} is not a valid label key"
            )
        return Driver(
            name=self.name,
            topology_key=self.topology_key,
            provision_seconds=seconds(self.provision, f"{path}.provision"),
            attach_seconds=seconds(self.attach, f"{path}.attach"),
            detach_seconds=seconds(self.detach, f"{path}.detach"),
            attach_required=self.attach_required,
        )


class ClassSection(Section):
    """A storage class of one of the drivers."""

    name: Name
    driver: str
    """The CSI driver that provisions its volumes."""
    binding: Literal["WaitForFirstConsumer", "Immediate"] = "WaitForFirstConsumer"
    """The volume binding mode."""
    reclaim: Literal["Delete", "Retain"] = "Delete"
    """The reclaim policy."""
    default: bool = False
    """Whether it is the default class."""
    zones: list[str] = []
    """Allowed topologies; empty for all zones."""

    def storage_class(self, driver: Driver) -> JsonObject:
        """Return the StorageClass."""
        meta: JsonObject = {"name": self.name}
        if self.default:
            meta["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        obj: JsonObject = {
            "metadata": meta,
            "provisioner": driver.name,
            "volumeBindingMode": self.binding,
            "reclaimPolicy": self.reclaim,
        }
        if self.zones:
            wanted = {"key": driver.topology_key, "values": list(self.zones)}
            obj["allowedTopologies"] = [{"matchLabelExpressions": [wanted]}]
        return obj


def drivers(sections: list[DriverSection]) -> dict[str, Driver]:
    """Return the CSI drivers by name."""
    found: dict[str, Driver] = {}
    for index, one in enumerate(sections):
        check_unique(found, one.name, f"csiDrivers[{index}].name")
        found[one.name] = one.driver(f"csiDrivers[{index}]")
    return found


def classes(sections: list[ClassSection], known: Mapping[str, Driver]) -> tuple[JsonObject, ...]:
    """Return the StorageClasses to create."""
    found: dict[str, JsonObject] = {}
    for index, one in enumerate(sections):
        path = f"storageClasses[{index}]"
        check_unique(found, one.name, f"{path}.name")
        driver = look_up(known, one.driver, f"{path}.driver", "CSI driver")
        found[one.name] = one.storage_class(driver)
    return tuple(found.values())
