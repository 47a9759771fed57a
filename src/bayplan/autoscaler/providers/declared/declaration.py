"""What is declared of a node group, checked; and what of it makes no sense.

A limit that cannot be read leaves its driver out, and nobody counts on it. A template of which
anything cannot be read is not used at all: with a taint missing, it would promise too much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from bayplan.autoscaler.providers.declared.sections import (
    GroupSection,
    TemplateSection,
    read_section,
)
from bayplan.base.configfiles import FieldProblem
from bayplan.kube.configvalues import check_labels, check_quantities
from bayplan.kube.meta import ObjectReference, Quantity
from bayplan.kube.nodes import Taint
from bayplan.nodegroups.templates import Limits, limits_of

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
