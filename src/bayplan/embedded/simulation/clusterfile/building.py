"""From the file's words to the parts: names are looked up, durations and quantities read.

Whatever does not hold together is a `FieldProblem` with the field's path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from bayplan.embedded.control.faults import AIMS, Fault
from bayplan.embedded.csi.drivers import Driver
from bayplan.embedded.nodes.machines import GroupDriver, InstanceType, NodeGroup
from bayplan.embedded.simulation.clusterfile import schema
from bayplan.embedded.simulation.clusterfile.spec import ScheduledFault, StorageClassSpec
from bayplan.kube.configfiles import FieldProblem
from bayplan.kube.durations import DurationError, parse_duration
from bayplan.kube.meta import Quantity
from bayplan.kube.names import is_label_value, is_qualified_name
from bayplan.kube.nodes import Taint
from bayplan.kube.quantity import QuantityError, parse

T = TypeVar("T")


def duration(value: schema.Duration, path: str) -> float:
    """Seconds."""
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except DurationError as error:
            raise FieldProblem(path, str(error)) from None
    if value < 0:
        raise FieldProblem(path, f"{value} is less than nothing")
    return float(value)


def drivers(file: schema.ClusterFile) -> dict[str, Driver]:
    """The CSI drivers by name."""
    found: dict[str, Driver] = {}
    for index, one in enumerate(file.csi_drivers):
        path = f"csiDrivers[{index}]"
        _once(found, one.name, f"{path}.name")
        if one.topology_key and not is_qualified_name(one.topology_key):
            raise FieldProblem(f"{path}.topologyKey", f"{one.topology_key!r} is no label key")
        found[one.name] = Driver(
            name=one.name,
            topology_key=one.topology_key,
            provision_seconds=duration(one.provision, f"{path}.provision"),
            attach_seconds=duration(one.attach, f"{path}.attach"),
            detach_seconds=duration(one.detach, f"{path}.detach"),
            attach_required=one.attach_required,
        )
    return found


def classes(file: schema.ClusterFile, known: Mapping[str, Driver]) -> tuple[StorageClassSpec, ...]:
    """The storage classes."""
    found: dict[str, StorageClassSpec] = {}
    for index, one in enumerate(file.storage_classes):
        path = f"storageClasses[{index}]"
        _once(found, one.name, f"{path}.name")
        driver = _find(known, one.driver, f"{path}.driver", "CSI driver")
        found[one.name] = StorageClassSpec(
            one.name, driver, one.binding, one.reclaim, one.default, tuple(one.zones)
        )
    return tuple(found.values())


def groups(file: schema.ClusterFile, known: Mapping[str, Driver]) -> tuple[NodeGroup, ...]:
    """The node groups, each with its instance type."""
    types: dict[str, InstanceType] = {}
    for index, one in enumerate(file.instance_types):
        _once(types, one.name, f"instanceTypes[{index}].name")
        types[one.name] = _instance_type(one, f"instanceTypes[{index}]")
    found: dict[str, NodeGroup] = {}
    for index, group in enumerate(file.node_groups):
        path = f"nodeGroups[{index}]"
        _once(found, group.name, f"{path}.name")
        type_ = _find(types, group.instance_type, f"{path}.instanceType", "instance type")
        found[group.name] = _group(group, type_, known, path)
    return tuple(found.values())


def faults(file: schema.ClusterFile, known: Mapping[str, Driver]) -> tuple[ScheduledFault, ...]:
    """The faults and their times."""
    named = {group.name: group for group in file.node_groups}
    return tuple(_fault(one, index, named, known) for index, one in enumerate(file.faults))


def fault_of(one: schema.FaultFile, path: str = "") -> Fault:
    """The fault itself, without its times."""
    fault = Fault(
        kind=one.kind,
        node=one.node,
        group=one.group,
        driver=one.driver,
        zone=one.zone,
        delay=duration(one.delay, f"{path}delay"),
        period=_positive(duration(one.period, f"{path}period"), f"{path}period"),
    )
    misaimed = fault.misaimed()
    if misaimed:
        fields = ", ".join(AIMS[one.kind])
        raise FieldProblem(path + misaimed, f"{one.kind} can be aimed only by {fields}")
    return fault


def _fault(
    one: schema.FaultFile,
    index: int,
    named: Mapping[str, object],
    known: Mapping[str, Driver],
) -> ScheduledFault:
    path = f"faults[{index}]"
    if one.group:
        _find(named, one.group, f"{path}.group", "node group")
    if one.driver:
        _find(known, one.driver, f"{path}.driver", "CSI driver")
    fault = fault_of(one, f"{path}.")
    at = duration(one.at, f"{path}.at")
    until = None if one.for_ is None else at + duration(one.for_, f"{path}.for")
    return ScheduledFault(f"file-{index}", fault, at, until)


def _instance_type(one: schema.InstanceTypeFile, path: str) -> InstanceType:
    for field, value in (("cpu", one.cpu), ("memory", one.memory)):
        _quantity(value, f"{path}.{field}")
    _quantity(one.ephemeral_storage, f"{path}.ephemeralStorage")
    _quantities(one.resources, f"{path}.resources")
    return InstanceType(
        name=one.name,
        cpu=one.cpu,
        memory=one.memory,
        pods=one.pods,
        ephemeral_storage=one.ephemeral_storage,
        resources=dict(one.resources),
        price=one.price,
    )


def _group(
    one: schema.NodeGroupFile, type_: InstanceType, known: Mapping[str, Driver], path: str
) -> NodeGroup:
    if not one.min <= one.count <= one.max:
        said = f"{one.count} is not between min {one.min} and max {one.max}"
        raise FieldProblem(f"{path}.count", said)
    _labels(one.labels, f"{path}.labels")
    _quantities(one.allocatable, f"{path}.allocatable")
    taints = [Taint(key=t.key, effect=t.effect, value=t.value) for t in one.taints]
    return NodeGroup(
        name=one.name,
        instance_type=type_,
        minimum=one.min,
        maximum=one.max,
        count=one.count,
        zones=tuple(one.zones),
        labels=dict(one.labels),
        taints=tuple(taints),
        allocatable=dict(one.allocatable),
        start_seconds=duration(one.start, f"{path}.start"),
        drivers=_group_drivers(one.drivers, known, f"{path}.drivers"),
    )


def _group_drivers(
    listed: list[schema.GroupDriverFile], known: Mapping[str, Driver], path: str
) -> dict[str, GroupDriver]:
    found: dict[str, GroupDriver] = {}
    for index, one in enumerate(listed):
        place = f"{path}[{index}]"
        _find(known, one.name, f"{place}.name", "CSI driver")
        _once(found, one.name, f"{place}.name")
        limit = None if one.limit == "none" else one.limit
        real = limit if one.real_limit is None else one.real_limit
        found[one.name] = GroupDriver(
            limit=limit,
            real_limit=None if real == "none" else real,
            delay=duration(one.delay, f"{place}.delay"),
            registers=one.registers,
        )
    return found


def _find(known: Mapping[str, T], name: str, path: str, what: str) -> T:
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise FieldProblem(path, f"there is no {what} {name!r}; there are: {listed}")
    return known[name]


def _once(found: Mapping[str, object], name: str, path: str) -> None:
    if name in found:
        raise FieldProblem(path, f"{name!r} is there twice")


def _positive(value: float, path: str) -> float:
    if value <= 0:
        raise FieldProblem(path, "must be more than nothing")
    return value


def _quantity(value: Quantity, path: str) -> None:
    try:
        amount = parse(value)
    except QuantityError as error:
        raise FieldProblem(path, str(error)) from None
    if amount < 0:
        raise FieldProblem(path, f"{value} is less than nothing")


def _quantities(amounts: Mapping[str, Quantity], path: str) -> None:
    for name, value in amounts.items():
        _quantity(value, f"{path}.{name}")


def _labels(labels: Mapping[str, str], path: str) -> None:
    checks: tuple[tuple[Callable[[str], bool], int], ...] = (
        (is_qualified_name, 0),
        (is_label_value, 1),
    )
    for pair in labels.items():
        for check, part in checks:
            if not check(pair[part]):
                raise FieldProblem(f"{path}.{pair[0]}", f"{pair[part]!r} is no label")
