"""A node group as it is declared in plain YAML: an entry of a file, or a NodeGroup's spec.

    id: MachineDeployment/default/workers   # what the cloud calls it, unless that is its name
    min: 0
    max: 10
    price: 0.8                              # an hour
    nodeSelector: {pool: workers}           # which nodes are its own
    template:
      labels: {pool: workers}
      taints: [{key: dedicated, value: shop, effect: NoSchedule}]
      capacity: {cpu: 16, memory: 64Gi, pods: 110}
      allocatable: {cpu: 15800m}            # as the capacity where it is not said
    csiDrivers: {ebs.csi.aws.com: 25, efs.csi.aws.com: none}
    options: {scaleDownUnneededTime: 5m}

Each field is read by itself, so that one that cannot be read spoils no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from bayplan.base.configfiles import FieldProblem, shaped
from bayplan.kube.configvalues import Count, Section
from bayplan.kube.meta import Quantity
from bayplan.nodegroups.sections import OptionsSection, TaintSection

Price = Annotated[float, msgspec.Meta(ge=0)]
Id = Annotated[str, msgspec.Meta(max_length=1000)]


class TemplateSection(Section):
    """What the next node will look like."""

    labels: dict[str, str] = {}
    """Of the nodes."""
    taints: list[TaintSection] = []
    """Of the nodes."""
    capacity: dict[str, Quantity] = {}
    """By resource; pods: 110 unless it is said."""
    allocatable: dict[str, Quantity] = {}
    """As the capacity where it is not said."""


class GroupSection(Section):
    """A group; all of it may be left out."""

    id: Id = ""
    """What the cloud calls it, unless that is its name."""
    min: Count | None = None
    """Least nodes."""
    max: Count | None = None
    """Most nodes."""
    price: Price | None = None
    """An hour's."""
    node_selector: dict[str, str] = {}
    """Which nodes are its own, for planning without a cloud."""
    template: TemplateSection = msgspec.field(default_factory=TemplateSection)
    """What the next node will look like."""
    csi_drivers: dict[str, object] | None = None
    """Anything may stand for a limit here, so that a bad one spoils only its driver."""
    options: OptionsSection = msgspec.field(default_factory=OptionsSection)
    """How it is scaled."""


def read_section(
    plain: Mapping[str, object], path: str = ""
) -> tuple[GroupSection, list[FieldProblem]]:
    """What of a declaration can be read, and what cannot."""
    kept: dict[str, object] = {}
    problems: list[FieldProblem] = []
    for name, value in plain.items():
        try:
            shaped({name: value}, GroupSection, path)
            kept[name] = value
        except FieldProblem as problem:
            problems.append(problem)
    return shaped(kept, GroupSection, path), problems
