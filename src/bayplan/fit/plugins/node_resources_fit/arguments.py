"""NodeResourcesFitArgs: resources that are not filtered by, and how requests are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from bayplan.fit.plugins.arguments import (
    Arguments,
    ArgumentStruct,
    PluginArguments,
    ResourceSpec,
    ShapePoint,
    check_shape,
    require,
)
from bayplan.kube.names import is_qualified_name
from bayplan.kube.resources import CPU, MEMORY


class StrategyType(Enum):
    """How what is requested of a node is scored."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class AllocationStrategy:
    """A scoring strategy, compiled."""

    type: StrategyType = StrategyType.LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))
    """Names and weights."""
    shape: tuple[tuple[int, int], ...] = ()
    """Points of utilization (0 to 100) and score (0 to 10), for RequestedToCapacityRatio."""


DEFAULT_STRATEGY = AllocationStrategy()


@dataclass(frozen=True, slots=True)
class ResourceFitSettings:
    """The arguments of NodeResourcesFit, compiled."""

    strategy: AllocationStrategy = field(default_factory=AllocationStrategy)
    ignored_resources: frozenset[str] = frozenset()
    """Extended resources that are not filtered by."""
    ignored_resource_groups: frozenset[str] = frozenset()
    """The same for all whose name starts with one of these and a slash."""

    @property
    def ignores(self) -> bool:
        """Whether some resources are not filtered by."""
        return bool(self.ignored_resources or self.ignored_resource_groups)


# -- as they are written -------------------------------------------------------------------------


class RatioParam(ArgumentStruct):
    """The function's points."""

    shape: list[ShapePoint] = []


class ScoringStrategy(ArgumentStruct):
    """How NodeResourcesFit scores."""

    type: str = "LeastAllocated"
    resources: list[ResourceSpec] = []
    requested_to_capacity_ratio: RatioParam | None = None


class NodeResourcesFitArgs(PluginArguments):
    """Arguments of NodeResourcesFit."""

    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategy = msgspec.field(default_factory=ScoringStrategy)


def _compile(args: NodeResourcesFitArgs, field: str) -> ResourceFitSettings:
    for name in args.ignored_resources:
        is_name = is_qualified_name(name)
        require(is_name, f"{field}.ignoredResources", f"{name[:80]!r} is no resource")
    for group in args.ignored_resource_groups:
        is_group = is_qualified_name(group) and "/" not in group
        require(is_group, f"{field}.ignoredResourceGroups", f"{group[:80]!r} is no group")
    return ResourceFitSettings(
        strategy=_strategy(args.scoring_strategy, f"{field}.scoringStrategy"),
        ignored_resources=frozenset(args.ignored_resources),
        ignored_resource_groups=frozenset(args.ignored_resource_groups),
    )


def _strategy(strategy: ScoringStrategy, field: str) -> AllocationStrategy:
    known = [one.value for one in StrategyType]
    require(strategy.type in known, f"{field}.type", f"must be one of {', '.join(known)}")
    resources = _weights(strategy.resources, f"{field}.resources")
    return AllocationStrategy(
        type=StrategyType(strategy.type),
        resources=resources or DEFAULT_STRATEGY.resources,
        shape=_shape(strategy, f"{field}.requestedToCapacityRatio"),
    )


def _weights(resources: Sequence[ResourceSpec], field: str) -> tuple[tuple[str, int], ...]:
    for index, resource in enumerate(resources):
        in_range = 0 <= resource.weight <= 100
        require(in_range, f"{field}[{index}].weight", "not in the range from 1 to 100")
    return tuple((resource.name, resource.weight or 1) for resource in resources)


def _shape(strategy: ScoringStrategy, field: str) -> tuple[tuple[int, int], ...]:
    given = strategy.requested_to_capacity_ratio
    is_ratio = strategy.type == StrategyType.REQUESTED_TO_CAPACITY_RATIO.value
    require(is_ratio or given is None, field, "is only for the type RequestedToCapacityRatio")
    if not is_ratio:
        return ()
    points = given.shape if given is not None else []
    require(bool(points), f"{field}.shape", "needs at least one point")
    return check_shape(points, f"{field}.shape")


ARGUMENTS = Arguments(NodeResourcesFitArgs, _compile)
