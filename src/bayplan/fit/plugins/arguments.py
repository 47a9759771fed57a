"""Arguments of plugins: as a KubeSchedulerConfiguration has them, and as a plugin reads them.

A plugin that takes arguments has an `Arguments` in its record: the type of its `args` on the wire,
a function that checks them as kube-scheduler does and makes the value that its filters and scores
read (`PluginSet.args_of`), and what of them makes no difference here. Whatever reads a
configuration finds all of that in the registry and knows no plugin's fields.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import msgspec

from bayplan.base.configfiles import FieldProblem, convert_value
from bayplan.kube.meta import Int32, Int64
from bayplan.kube.pods import Container, Pod, PodSpec
from bayplan.kube.validation import check


class ArgumentStruct(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of arguments and their parts: an unknown field is an error."""


class PluginArguments(ArgumentStruct):
    """Base of a plugin's arguments, which may name their own type."""

    api_version: str = ""
    kind: str = ""


class ResourceSpec(ArgumentStruct):
    """A resource and its weight; 0 counts as 1."""

    name: str
    weight: Int64 = 1


class ShapePoint(ArgumentStruct):
    """A point of the function from utilization (percent) to score (0 to 10)."""

    utilization: Int32
    score: Int32


A = TypeVar("A", bound=PluginArguments)


class ReadArguments(NamedTuple):
    """What came of the arguments of one plugin."""

    compiled: Hashable
    warnings: tuple[str, ...]
    """What was asked for and makes no difference here."""


@dataclass(frozen=True, slots=True)
class Arguments(Generic[A]):
    """How a plugin's arguments are written, checked and compiled."""

    wire: type[A]
    """As they are written; its name is their kind."""
    compile: Callable[[A, str], Hashable]
    """The value that the plugin reads; FieldProblem, under a field, where they make no sense."""
    warnings: Callable[[A], Iterable[str]] = lambda _: ()
    """What of them makes no difference here."""

    def read(self, written: Mapping[str, object], field: str) -> ReadArguments:
        """Read arguments as they are written; FieldProblem if they cannot be used."""
        args = convert_value(written, self.wire, field)
        if args.kind and args.kind != self.wire.__name__:
            raise FieldProblem(f"{field}.kind", f"must be {self.wire.__name__}")
        return ReadArguments(self.compile(args, field), tuple(self.warnings(args)))


def require(holds: bool, field: str, problem: str) -> None:
    """Raise FieldProblem unless a condition holds."""
    if not holds:
        raise FieldProblem(field, problem)


def check_shape(points: Sequence[ShapePoint], field: str) -> tuple[tuple[int, int], ...]:
    """Return the points of a function from utilization to score; FieldProblem if it is none."""
    last = -1
    for index, point in enumerate(points):
        place = f"{field}[{index}]"
        require(0 <= point.utilization <= 100, f"{place}.utilization", "not from 0 to 100")
        require(0 <= point.score <= 10, f"{place}.score", "not from 0 to 10")
        in_order = point.utilization > last
        require(in_order, f"{place}.utilization", "must be more than the one before")
        last = point.utilization
    return tuple((point.utilization, point.score) for point in points)


def check_in_pod(spec: PodSpec, field: str) -> None:
    """Raise FieldProblem unless a default for pods would be valid in a pod."""
    spec.containers = [Container(name="c")]
    pod = Pod(spec=spec)
    pod.metadata.name = "p"
    try:
        check(pod)
    except ValueError as error:
        raise FieldProblem(field, str(error).partition(": ")[2]) from None
