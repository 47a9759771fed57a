"""The sections `instanceTypes` and `nodeGroups`: as they are written, and the groups they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from bayplan.base.configfiles import FieldProblem
from bayplan.embedded.apiserver.rest import metadata
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.embedded.control.view import NODES
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.machines import Cloud, GroupDriver, Instance, InstanceType, NodeGroup
from bayplan.embedded.nodes.registration import node_object
from bayplan.kube.configvalues import (
    Count,
    Duration,
    Name,
    Section,
    check_labels,
    check_quantities,
    find,
    once,
    seconds,
)
from bayplan.kube.meta import Quantity
from bayplan.nodegroups.sections import OptionsSection, TaintSection

_MOST = 99_999
"""Numbers of nodes go on beyond a group's maximum, since none is used twice."""
_NEVER = "1970-01-01T00:00:00Z"


def check_nodes(group: NodeGroup, path: str) -> None:
    """A node of the group in each of its zones has to be one that can be registered."""
    strategy = strategy_of(NODES)
    for zone in group.zones:
        node = node_object(Instance(f"{group.name}-{_MOST}", group, zone, 0.0, None), _NEVER)
        for cause in (*metadata.problems(node, strategy), *strategy.validate(node)):
            said = f"its nodes would be refused: {cause.field}: {cause.message}"
            raise FieldProblem(path, said)


class InstanceTypeSection(Section):
    """A size of machine."""

    name: str
    cpu: Quantity = "4"
    memory: Quantity = "16Gi"
    pods: Count = 110
    """The most pods on a node."""
    ephemeral_storage: Quantity = "100Gi"
    resources: dict[str, Quantity] = {}
    """Further resources."""
    price: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """An hour's."""

    def instance_type(self, path: str) -> InstanceType:
        """The instance type."""
        own = {"cpu": self.cpu, "memory": self.memory, "ephemeralStorage": self.ephemeral_storage}
        check_quantities(own, path)
        check_quantities(self.resources, f"{path}.resources")
        return InstanceType(**msgspec.structs.asdict(self))


class GroupDriverSection(Section):
    """A CSI driver on the nodes of a group."""

    name: str
    limit: Count | Literal["none"] = "none"
    """What CSINode says; none publishes no limit."""
    real_limit: Count | Literal["none"] | None = None
    """What the machine can; as limit unless said."""
    delay: Duration = 10
    """From the node to the driver on it."""
    registers: bool = True
    """Whether it ever comes."""

    def group_driver(self, path: str) -> GroupDriver:
        """The driver; the machine can do what it says unless told otherwise."""
        limit = None if self.limit == "none" else self.limit
        real = limit if self.real_limit is None else self.real_limit
        return GroupDriver(
            limit=limit,
            real_limit=None if real == "none" else real,
            delay=seconds(self.delay, f"{path}.delay"),
            registers=self.registers,
        )


class GroupSection(Section):
    """Equal nodes."""

    name: Name
    instance_type: str
    count: Count = 0
    """Nodes at the start."""
    min: Count = 0
    """Least nodes."""
    max: Count = 1000
    """Most nodes."""
    cloud: Cloud = "sim"
    """How the nodes' provider IDs begin."""
    zones: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("zone-a",)
    """Nodes take them in turn."""
    labels: dict[str, str] = {}
    """Of the nodes."""
    taints: list[TaintSection] = []
    """Of the nodes."""
    allocatable: dict[str, Quantity] = {}
    """Published beyond the type's resources."""
    start: Duration = 30
    """From the purchase to the node."""
    drivers: list[GroupDriverSection] = []
    """CSI drivers on the nodes."""
    options: OptionsSection = msgspec.field(default_factory=OptionsSection)
    """How autoscalers are asked to scale it."""

    def group(self, type_: InstanceType, known: Mapping[str, Driver], path: str) -> NodeGroup:
        """The node group."""
        if not self.min <= self.count <= self.max:
            said = f"{self.count} is not between min {self.min} and max {self.max}"
            raise FieldProblem(f"{path}.count", said)
        check_labels(self.labels, f"{path}.labels")
        check_quantities(self.allocatable, f"{path}.allocatable")
        taints = [one.taint(f"{path}.taints[{index}]") for index, one in enumerate(self.taints)]
        return NodeGroup(
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
            find(known, one.name, f"{path}[{index}].name", "CSI driver")
            once(found, one.name, f"{path}[{index}].name")
            found[one.name] = one.group_driver(f"{path}[{index}]")
        return found


def groups(
    types: list[InstanceTypeSection], sections: list[GroupSection], known: Mapping[str, Driver]
) -> tuple[NodeGroup, ...]:
    """The node groups, each with its instance type."""
    sizes = _types(types)
    found: dict[str, NodeGroup] = {}
    for index, one in enumerate(sections):
        path = f"nodeGroups[{index}]"
        once(found, one.name, f"{path}.name")
        size = find(sizes, one.instance_type, f"{path}.instanceType", "instance type")
        found[one.name] = one.group(size, known, path)
        check_nodes(found[one.name], path)
    return tuple(found.values())


def _types(sections: list[InstanceTypeSection]) -> dict[str, InstanceType]:
    found: dict[str, InstanceType] = {}
    for index, one in enumerate(sections):
        once(found, one.name, f"instanceTypes[{index}].name")
        found[one.name] = one.instance_type(f"instanceTypes[{index}]")
    return found
