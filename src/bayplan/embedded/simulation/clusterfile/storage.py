"""The sections `csiDrivers` and `storageClasses`: as they are written, and what becomes of them."""

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
    find,
    once,
    seconds,
)
from bayplan.kube.names import is_qualified_name


class DriverSection(Section):
    """A CSI driver."""

    name: Name
    topology_key: str = "topology.kubernetes.io/zone"
    """Volumes are of one domain of this label; empty for volumes that can be used everywhere."""
    provision: Duration = 2
    """How long the cloud takes to make a volume."""
    attach: Duration = 3
    """How long to attach one."""
    detach: Duration = 2
    """How long to detach one."""
    attach_required: bool = True
    """Whether volumes are attached at all."""

    def driver(self, path: str) -> Driver:
        """The driver."""
        if self.topology_key and not is_qualified_name(self.topology_key):
            raise FieldProblem(f"{path}.topologyKey", f"{self.topology_key!r} is no label key")
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
    """Who makes its volumes."""
    binding: Literal["WaitForFirstConsumer", "Immediate"] = "WaitForFirstConsumer"
    """When a claim gets its volume."""
    reclaim: Literal["Delete", "Retain"] = "Delete"
    """What becomes of a volume whose claim has gone."""
    default: bool = False
    """For claims that name no class."""
    zones: list[str] = []
    """Only in these, if any are named."""

    def storage_class(self, driver: Driver) -> JsonObject:
        """The StorageClass."""
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
    """The CSI drivers by name."""
    found: dict[str, Driver] = {}
    for index, one in enumerate(sections):
        once(found, one.name, f"csiDrivers[{index}].name")
        found[one.name] = one.driver(f"csiDrivers[{index}]")
    return found


def classes(sections: list[ClassSection], known: Mapping[str, Driver]) -> tuple[JsonObject, ...]:
    """The StorageClasses to create."""
    found: dict[str, JsonObject] = {}
    for index, one in enumerate(sections):
        path = f"storageClasses[{index}]"
        once(found, one.name, f"{path}.name")
        driver = find(known, one.driver, f"{path}.driver", "CSI driver")
        found[one.name] = one.storage_class(driver)
    return tuple(found.values())
