"""The declaration of a node group in YAML: an entry of a file, or a NodeGroup's spec.

    id: MachineDeployment/default/workers   # the provider's id, if it is not the name
    min: 0
    max: 10
    price: 0.8                              # an hour
    nodeSelector: {pool: workers}           # selects its nodes
    template:
      labels: {pool: workers}
      taints: [{key: dedicated, value: shop, effect: NoSchedule}]
      capacity: {cpu: 16, memory: 64Gi, pods: 110}
      allocatable: {cpu: 15800m}            # the capacity where left out
    csiDrivers: {ebs.csi.aws.com: 25, efs.csi.aws.com: none}
    options: {scaleDownUnneededTime: 5m}

Each field is read by itself, so that an invalid one does not affect others. A driver with an
invalid limit is left out. A template with an invalid field is not used at all: without one of its
taints it would fit too many pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import msgspec

from bayplan.base.configfiles import FieldProblem, convert_value
from bayplan.kube.configvalues import Count, Section, check_labels, check_quantities
from bayplan.kube.meta import ObjectReference, Quantity
from bayplan.kube.nodes import Taint
from bayplan.nodegroups.config_sections import OptionsSection, TaintSection
from bayplan.nodegroups.templates import Limits, parse_limits

Price = Annotated[float, msgspec.Meta(ge=0)]
Id = Annotated[str, msgspec.Meta(max_length=1000)]


class TemplateSection(Section):
    """The template of the next node."""

    labels: dict[str, str] = {}
    """Of the nodes."""
    taints: list[TaintSection] = []
    """Of the nodes."""
    capacity: dict[str, Quantity] = {}
    """By resource; pods: 110 by default."""
    allocatable: dict[str, Quantity] = {}
    """By resource; the capacity where left out."""


class GroupSection(Section):
    """A node group; all fields may be left out."""

    id: Id = ""
    """The provider's id, if it is not the name."""
    min: Count | None = None
    """Minimum size."""
    max: Count | None = None
    """Maximum size."""
    price: Price | None = None
    """The hourly price of a node."""
    node_selector: dict[str, str] = {}
    """Selects its nodes, for planning without a cloud."""
    template: TemplateSection = msgspec.field(default_factory=TemplateSection)
    """The template of the next node."""
    csi_drivers: dict[str, object] | None = None
    """Attach limits by driver: a number, or none for no limit."""
    options: OptionsSection = msgspec.field(default_factory=OptionsSection)
    """Autoscaling options."""


def read_section(
    plain: Mapping[str, object], path: str = ""
) -> tuple[GroupSection, list[FieldProblem]]:
    """Read the valid fields of a declaration, and the problems of the others."""
    kept: dict[str, object] = {}
    problems: list[FieldProblem] = []
    for name, value in plain.items():
        try:
            convert_value({name: value}, GroupSection, path)
            kept[name] = value
        except FieldProblem as problem:
            problems.append(problem)
    return convert_value(kept, GroupSection, path), problems


T = TypeVar("T")
_Bounds = tuple[int | None, int | None]
_UNBOUNDED: _Bounds = (None, None)


@dataclass(frozen=True, slots=True)
class TemplateDescription:
    """The declared properties of a group's next node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, Quantity] = field(default_factory=dict)
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of one group; None is left out."""

    group: str
    """The group's id in the provider."""
    min_size: int | None = None
    max_size: int | None = None
    price: float | None = None
    """The hourly price of a node."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    description: TemplateDescription = field(default_factory=TemplateDescription)
    limits: Limits | None = None
    unread: tuple[str, ...] = ()
    """Drivers whose limit cannot be read."""
    options: Mapping[str, float | bool] = field(default_factory=dict)
    problems: tuple[FieldProblem, ...] = ()
    about: ObjectReference | None = None
    """The object that declares it; None for an entry of a file."""


def declare(
    name: str, plain: Mapping[str, object], path: str = "", about: ObjectReference | None = None
) -> Declaration:
    """Build the declaration of a group, with its problems."""
    section, problems = read_section(plain, path)
    prefix = f"{path}." if path else ""

    def checked(work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except FieldProblem as problem:
            problems.append(problem)
            return otherwise

    is_sound = not any(one.field.startswith(f"{prefix}template") for one in problems)
    described = checked(
        lambda: _description(section.template, f"{prefix}template"), TemplateDescription()
    )
    low, high = checked(lambda: _bounds(section, prefix), _UNBOUNDED)
    limits, unread, wrong = _limits(section.csi_drivers, f"{prefix}csiDrivers")
    return Declaration(
        group=section.id or name,
        min_size=low,
        max_size=high,
        price=section.price,
        node_selector=checked(lambda: _labels(section.node_selector, f"{prefix}nodeSelector"), {}),
        description=described if is_sound else TemplateDescription(),
        limits=limits,
        unread=unread,
        options=checked(lambda: section.options.options(f"{prefix}options"), {}),
        problems=(*problems, *wrong),
        about=about,
    )


def _description(section: TemplateSection, path: str) -> TemplateDescription:
    check_quantities(section.capacity, f"{path}.capacity")
    check_quantities(section.allocatable, f"{path}.allocatable")
    taints = [one.taint(f"{path}.taints[{index}]") for index, one in enumerate(section.taints)]
    labels = _labels(section.labels, f"{path}.labels")
    return TemplateDescription(labels, tuple(taints), section.capacity, section.allocatable)


def _labels(section: Mapping[str, str], path: str) -> Mapping[str, str]:
    check_labels(section, path)
    return section


def _bounds(section: GroupSection, prefix: str) -> _Bounds:
    if section.min is not None and section.max is not None and section.min > section.max:
        raise FieldProblem(f"{prefix}min", f"{section.min} is more than max {section.max}")
    return section.min, section.max


def _limits(
    section: Mapping[str, object] | None, path: str
) -> tuple[Limits | None, tuple[str, ...], list[FieldProblem]]:
    if section is None:
        return None, (), []
    limits: Limits = {}
    wrong: dict[str, FieldProblem] = {}
    for driver, count in section.items():
        known, problems = parse_limits({driver: _text(count)}, "")
        limits |= known
        for problem in problems:
            wrong[driver] = FieldProblem(f"{path}.{driver[:100]}", problem.partition(": ")[2])
    return limits, tuple(wrong), list(wrong.values())


def _text(count: object) -> str:
    """Return a limit as text; any other type is invalid."""
    return str(count) if isinstance(count, int | str) and not isinstance(count, bool) else "?"
