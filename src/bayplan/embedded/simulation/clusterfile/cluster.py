"""Reading a cluster file: YAML, then its shape, then its sense; each error names line and field.

Each section has a module that says how it is written and what becomes of it; here they come
together, from a `ClusterFile` to the `ClusterSpec` that a simulation is made from.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec

from bayplan.base.configfiles import ConfigFileError, FieldProblem, parse, read_text, shaped
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes.machines import NodeGroup
from bayplan.embedded.simulation.clusterfile.faults import (
    FaultSection,
    ScheduledFault,
    Targets,
    faults,
)
from bayplan.embedded.simulation.clusterfile.groups import (
    GroupSection,
    InstanceTypeSection,
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
from bayplan.kube.attachtables import LimitsSection, check_own_limits
from bayplan.kube.configvalues import Section


class ClusterFile(Section):
    """Everything, as it is written; docs/cluster-file.md explains every field."""

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 1
    csi_drivers: list[DriverSection] = []
    storage_classes: list[ClassSection] = []
    instance_types: list[InstanceTypeSection] = []
    node_groups: list[GroupSection] = []
    attach_limits: LimitsSection | None = None
    faults: list[FaultSection] = []
    workloads: list[WorkloadSection] = []


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """What a cluster is made from."""

    source: str = "cluster"
    seed: int = 1
    drivers: dict[str, Driver] = field(default_factory=dict)
    classes: tuple[JsonObject, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    attach_limits: LimitsSection | None = None
    """How nodes publish what they can attach; None if nobody does that for them."""
    faults: tuple[ScheduledFault, ...] = ()
    workloads: tuple[WorkloadSpec, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)
    """The lines of the workloads' places."""

    def targets(self, present: Container[str] = ()) -> Targets:
        """Whom faults can strike, beside nodes that are there already."""
        return Targets.of(self.groups, self.drivers, present)


def read_cluster(path: Path) -> ClusterSpec:
    """The cluster that a file describes; ConfigFileError if it cannot be used."""
    return parse_cluster(read_text(path), str(path), path.parent)


def parse_cluster(text: bytes, source: str, folder: Path) -> ClusterSpec:
    """The cluster that a text describes; other files are looked for in the folder."""
    document = parse(text, source, ClusterFile)
    try:
        spec = _spec(document.value, folder)
    except FieldProblem as problem:
        raise document.error(problem) from None
    lines = {one.place: document.places.line(one.place) for one in spec.workloads}
    return replace(spec, source=source, lines=lines)


def plain_cluster(text: bytes, source: str, folder: Path) -> dict[str, object]:
    """What a text says, with the files that it names written into it; ConfigFileError if it
    describes no cluster.
    """
    spec = parse_cluster(text, source, folder)
    value = parse(text, source, dict[str, object]).value
    for index, section in enumerate(_workloads_in(value)):
        if section.pop("file", None):
            section["manifest"] = list(spec.workloads[index].objects)
    return value


def cluster_of(value: object, source: str, folder: Path) -> ClusterSpec:
    """The cluster that a plain value describes; ConfigFileError names the field."""
    try:
        return replace(_spec(shaped(value, ClusterFile), folder), source=source)
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
        check_own_limits(file.attach_limits.limits, "attachLimits.limits")
    return ClusterSpec(
        seed=file.seed,
        drivers=known,
        classes=classes(file.storage_classes, known),
        groups=found,
        attach_limits=file.attach_limits,
        faults=struck,
        workloads=workloads(file.workloads, folder),
    )
