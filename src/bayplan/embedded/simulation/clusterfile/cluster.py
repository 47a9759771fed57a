"""Reading of cluster files: YAML, types, then values; each error names line and field.

Each section has a module with its fields and its result; here they are combined, from a
`ClusterFile` to the `ClusterSpec` of a simulation.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec

from bayplan.base.configfiles import ConfigFileError, FieldProblem, convert_value, parse, read_text
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.machines import SimulatedNodeGroup
from bayplan.embedded.simulation.clusterfile.faults import (
    FaultSection,
    ScheduledFault,
    Targets,
    faults,
)
from bayplan.embedded.simulation.clusterfile.groups import (
    InstanceTypeSection,
    NodeGroupSection,
    groups,
)
from bayplan.embedded.simulation.clusterfile.storage import (
    ClassSection,
    DriverSection,
    classes,
    drivers,
)
from bayplan.embedded.simulation.clusterfile.workloads import (
    WorkloadSection,
    WorkloadSpec,
    workloads,
)
from bayplan.kube.attachtables import LimitsSection, check_custom_limits
from bayplan.kube.configvalues import Section


class ClusterFile(Section):
    """The fields of a cluster file; docs/cluster-file.md documents every field."""

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 1
    csi_drivers: list[DriverSection] = []
    storage_classes: list[ClassSection] = []
    instance_types: list[InstanceTypeSection] = []
    node_groups: list[NodeGroupSection] = []
    attach_limits: LimitsSection | None = None
    faults: list[FaultSection] = []
    workloads: list[WorkloadSection] = []


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The description of a simulated cluster."""

    source: str = "cluster"
    seed: int = 1
    drivers: dict[str, Driver] = field(default_factory=dict)
    classes: tuple[JsonObject, ...] = ()
    groups: tuple[SimulatedNodeGroup, ...] = ()
    attach_limits: LimitsSection | None = None
    """How nodes publish attach limits; None if they do not."""
    faults: tuple[ScheduledFault, ...] = ()
    workloads: tuple[WorkloadSpec, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)
    """Line numbers of the workloads."""

    def targets(self, present: Container[str] = ()) -> Targets:
        """Return the possible targets of faults, with the existing nodes."""
        return Targets.of(self.groups, self.drivers, present)


def read_cluster(path: Path) -> ClusterSpec:
    """Read a cluster file; ConfigFileError if it is invalid."""
    return parse_cluster(read_text(path), str(path), path.parent)


def parse_cluster(text: bytes, source: str, folder: Path) -> ClusterSpec:
    """Parse the text of a cluster file; other files are relative to the folder."""
    document = parse(text, source, ClusterFile)
    try:
        spec = _spec(document.value, folder)
    except FieldProblem as problem:
        raise document.error(problem) from None
    lines = {one.place: document.lines.line(one.place) for one in spec.workloads}
    return replace(spec, source=source, lines=lines)


def plain_cluster(text: bytes, source: str, folder: Path) -> dict[str, object]:
    """Return a cluster file's data with all named files inlined; ConfigFileError if invalid."""
    spec = parse_cluster(text, source, folder)
    value = parse(text, source, dict[str, object]).value
    for index, section in enumerate(_workloads_in(value)):
        if section.pop("file", None):
            section["manifest"] = list(spec.workloads[index].objects)
    return value


def cluster_of(value: object, source: str, folder: Path) -> ClusterSpec:
    """Return the cluster of plain data; ConfigFileError names the field."""
    try:
        return replace(_spec(convert_value(value, ClusterFile), folder), source=source)
    except FieldProblem as problem:
        raise ConfigFileError(source, 0, problem.field, problem.problem) from None


def _workloads_in(value: dict[str, object]) -> list[dict[str, object]]:
    found = value.get("workloads")
    return found if isinstance(found, list) else []


def _spec(file: ClusterFile, folder: Path) -> ClusterSpec:
    known = drivers(file.csi_drivers)
    found = groups(file.instance_types, file.node_groups, known)
    struck = faults(file.faults, Targets.of(found, known))
    if file.attach_limits is not None:
        check_custom_limits(file.attach_limits.limits, "attachLimits.limits")
    return ClusterSpec(
        seed=file.seed,
        drivers=known,
        classes=classes(file.storage_classes, known),
        groups=found,
        attach_limits=file.attach_limits,
        faults=struck,
        workloads=workloads(file.workloads, folder),
    )
