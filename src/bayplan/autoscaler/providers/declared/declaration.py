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

Each field is read by itself, so that one that cannot be read spoils no other. A limit that cannot
be read leaves its driver out, and nothing counts on it. A template of which anything cannot be read
is not used at all: with a taint missing, it would promise too much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import msgspec

from bayplan.base.configfiles import FieldProblem, shaped
from bayplan.kube.configvalues import Count, Section, check_labels, check_quantities
from bayplan.kube.meta import ObjectReference, Quantity
from bayplan.kube.nodes import Taint
from bayplan.nodegroups.sections import OptionsSection, TaintSection
from bayplan.nodegroups.templates import Limits, limits_of

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


T = TypeVar("T")
_Bounds = tuple[int | None, int | None]
_UNBOUNDED: _Bounds = (None, None)


@dataclass(frozen=True, slots=True)
class Description:
    """What is said of a group's next node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, Quantity] = field(default_factory=dict)
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is declared of one group; None is what is not said."""

    group: str
    """The group's id, as the cloud has it."""
    min_size: int | None = None
    max_size: int | None = None
    price: float | None = None
    """An hour."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    description: Description = field(default_factory=Description)
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
    """The declaration of a group, with everything in it that makes no sense."""
    section, problems = read_section(plain, path)
    prefix = f"{path}." if path else ""

    def checked(work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except FieldProblem as problem:
            problems.append(problem)
            return otherwise

    is_sound = not any(one.field.startswith(f"{prefix}template") for one in problems)
    described = checked(lambda: _description(section.template, f"{prefix}template"), Description())
    low, high = checked(lambda: _bounds(section, prefix), _UNBOUNDED)
    limits, unread, wrong = _limits(section.csi_drivers, f"{prefix}csiDrivers")
    return Declaration(
        group=section.id or name,
        min_size=low,
        max_size=high,
        price=section.price,
        node_selector=checked(lambda: _labels(section.node_selector, f"{prefix}nodeSelector"), {}),
        description=described if is_sound else Description(),
        limits=limits,
        unread=unread,
        options=checked(lambda: section.options.options(f"{prefix}options"), {}),
        problems=(*problems, *wrong),
        about=about,
    )


def _description(said: TemplateSection, path: str) -> Description:
    check_quantities(said.capacity, f"{path}.capacity")
    check_quantities(said.allocatable, f"{path}.allocatable")
    taints = [one.taint(f"{path}.taints[{index}]") for index, one in enumerate(said.taints)]
    labels = _labels(said.labels, f"{path}.labels")
    return Description(labels, tuple(taints), said.capacity, said.allocatable)


def _labels(said: Mapping[str, str], path: str) -> Mapping[str, str]:
    check_labels(said, path)
    return said


def _bounds(said: GroupSection, prefix: str) -> _Bounds:
    if said.min is not None and said.max is not None and said.min > said.max:
        raise FieldProblem(f"{prefix}min", f"{said.min} is more than max {said.max}")
    return said.min, said.max


def _limits(
    said: Mapping[str, object] | None, path: str
) -> tuple[Limits | None, tuple[str, ...], list[FieldProblem]]:
    if said is None:
        return None, (), []
    limits: Limits = {}
    wrong: dict[str, FieldProblem] = {}
    for driver, count in said.items():
        known, problems = limits_of({driver: _text(count)}, "")
        limits |= known
        for problem in problems:
            wrong[driver] = FieldProblem(f"{path}.{driver[:100]}", problem.partition(": ")[2])
    return limits, tuple(wrong), list(wrong.values())


def _text(count: object) -> str:
    """A limit as text; whatever is neither a number nor text is none."""
    return str(count) if isinstance(count, int | str) and not isinstance(count, bool) else "?"
