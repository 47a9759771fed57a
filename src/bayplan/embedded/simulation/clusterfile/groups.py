"""The sections `instanceTypes` and `nodeGroups`: their fields and node groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from bayplan.base.configfiles import FieldProblem
from bayplan.embedded.apiserver.rest import metadata
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.embedded.control.view import NODES
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.machines import (
    Cloud,
    GroupDriver,
    InstanceType,
    SimulatedInstance,
    SimulatedNodeGroup,
)
from bayplan.embedded.nodes.registration import node_object
from bayplan.kube.configvalues import (
    Count,
    Duration,
    Name,
    Section,
    check_labels,
    check_quantities,
    check_unique,
    look_up,
    seconds,
)
from bayplan.kube.meta import Quantity
from bayplan.nodegroups.config_sections import OptionsSection, TaintSection

_MAX_NODE_NUMBER = 99_999
"""Highest node number that is checked: numbers are not reused and exceed a group's maximum."""
_NEVER = "1970-01-01T00:00:00Z"


def check_nodes(group: SimulatedNodeGroup, path: str) -> None:
    """Check that a node of the group in each of its zones would be valid."""
    strategy = strategy_of(NODES)
    for zone in group.zones:
        node = node_object(
            SimulatedInstance(f"{group.name}-{_MAX_NODE_NUMBER}", group, zone, 0.0, None), _NEVER
        )
        for cause in (*metadata.problems(node, strategy), *strategy.validate(node)):
            message = f"its nodes would be refused: {cause.field}: {cause.message}"
            raise FieldProblem(path, message)


class InstanceTypeSection(Section):
    """An instance type."""

    name: str
    cpu: Quantity = "4"
    memory: Quantity = "16Gi"
    pods: Count = 110
    """Maximum number of pods on a node."""
    ephemeral_storage: Quantity = "100Gi"
    resources: dict[str, Quantity] = {}
    """Further resources."""
    price: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Price per hour."""

    def instance_type(self, path: str) -> InstanceType:
        """Return the instance type."""
        own = {"cpu": self.cpu, "memory": self.memory, "ephemeralStorage": self.ephemeral_storage}
        check_quantities(own, path)
        check_quantities(self.resources, f"{path}.resources")
        return InstanceType(**msgspec.structs.asdict(self))


class GroupDriverSection(Section):
    """A CSI driver on the nodes of a group."""

    name: str
    limit: Count | Literal["none"] = "none"
    """Attach limit in CSINode; `none` publishes no limit."""
    real_limit: Count | Literal["none"] | None = None
    """Attach limit of the machine; the same as `limit` by default."""
    delay: Duration = 10
    """Time from the node's registration to the driver's."""
    registers: bool = True
    """Whether the driver registers at all."""

    def group_driver(self, path: str) -> GroupDriver:
        """Return the driver; the real limit defaults to the limit."""
        limit = None if self.limit == "none" else self.limit
        real = limit if self.real_limit is None else self.real_limit
        return GroupDriver(
            limit=limit,
            real_limit=None if real == "none" else real,
            delay=seconds(self.delay, f"{path}.delay"),
            registers=self.registers,
        )


class NodeGroupSection(Section):
    """A group of equal nodes."""

    name: Name
    instance_type: str
    count: Count = 0
    """Nodes at the start."""
    min: Count = 0
    """Minimum size."""
    max: Count = 1000
    """Maximum size."""
    cloud: Cloud = "sim"
    """Provider whose ID format the nodes use."""
    zones: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("zone-a",)
    """Zones of the nodes, in turn."""
    labels: dict[str, str] = {}
    """Labels of the nodes."""
    taints: list[TaintSection] = []
    """Taints of the nodes."""
    allocatable: dict[str, Quantity] = {}
    """Entries of `status.allocatable` beyond the resources of the type."""
    start: Duration = 30
    """Time from the scale-up to the registration of the node."""
    drivers: list[GroupDriverSection] = []
    """CSI drivers on the nodes."""
    options: OptionsSection = msgspec.field(default_factory=OptionsSection)
    """Autoscaling options of the group."""

    def group(
        self, type_: InstanceType, known: Mapping[str, Driver], path: str
    ) -> SimulatedNodeGroup:
        """Return the node group."""
        if not self.min <= self.count <= self.max:
            message = f"{self.count} is not between min {self.min} and max {self.max}"
            raise FieldProblem(f"{path}.count", message)
        check_labels(self.labels, f"{path}.labels")
        check_quantities(self.allocatable, f"{path}.allocatable")
        taints = [one.taint(f"{path}.taints[{index}]") for index, one in enumerate(self.taints)]
        return SimulatedNodeGroup(
            name=self.name,
            instance_type=type_,
            minimum=self.min,
            maximum=self.max,
            count=self.count,
            cloud=self.cloud,
            zones=self.zones,
            labels=self.labels,
            taints=tuple(taints),
            allocatable=self.allocatable,
            start_seconds=seconds(self.start, f"{path}.start"),
            drivers=self._drivers(known, f"{path}.drivers"),
            options=self.options.options(f"{path}.options"),
        )

    def _drivers(self, known: Mapping[str, Driver], path: str) -> dict[str, GroupDriver]:
        found: dict[str, GroupDriver] = {}
        for index, one in enumerate(self.drivers):
            look_up(known, one.name, f"{path}[{index}].name", "CSI driver")
            check_unique(found, one.name, f"{path}[{index}].name")
            found[one.name] = one.group_driver(f"{path}[{index}]")
        return found


def groups(
    types: list[InstanceTypeSection], sections: list[NodeGroupSection], known: Mapping[str, Driver]
) -> tuple[SimulatedNodeGroup, ...]:
    """Return the node groups, each with its instance type."""
    sizes = _types(types)
    found: dict[str, SimulatedNodeGroup] = {}
    for index, one in enumerate(sections):
        path = f"nodeGroups[{index}]"
        check_unique(found, one.name, f"{path}.name")
        size = look_up(sizes, one.instance_type, f"{path}.instanceType", "instance type")
        found[one.name] = one.group(size, known, path)
        check_nodes(found[one.name], path)
    return tuple(found.values())


def _types(sections: list[InstanceTypeSection]) -> dict[str, InstanceType]:
    found: dict[str, InstanceType] = {}
    for index, one in enumerate(sections):
        check_unique(found, one.name, f"instanceTypes[{index}].name")
        found[one.name] = one.instance_type(f"instanceTypes[{index}]")
    return found
