"""NodeResourcesFit scores nodes by what is requested of them: by default emptier nodes are better.

The default scores the cpu and memory that would be left free, counting a default for containers
that request nothing. A profile may score by other resources, weights or strategies. A
resource that a node does not have is then left out for that node, and an extended one that the pod
does not request is left out for all. Integers are rounded where kube-scheduler rounds them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.fit.plugins.base import MAX_SCORE, EvaluationRequest, LocalScore, ReadScope, Score
from bayplan.fit.plugins.node_resources_fit.arguments import (
    DEFAULT_STRATEGY,
    AllocationStrategy,
    ResourceFitSettings,
    StrategyType,
)
from bayplan.fit.plugins.node_resources_fit.filter import NAME
from bayplan.fit.state.columns import IntArray, Rows, constant, pick
from bayplan.fit.state.resources import ResourceColumns
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar

MAX_SHAPE_SCORE = 10
_SCORED = {CPU: 0, MEMORY: 1}
"""Their columns where defaults are counted."""


class Amounts:
    """What nodes have of one resource, and what is requested of it."""

    def __init__(self, name: str, resources: ResourceColumns) -> None:
        resources.ensure(name)
        self._resources = resources
        self._column = resources.columns[name]
        self._scored = _SCORED.get(name)

    def capacity(self, rows: Rows) -> IntArray:
        """What nodes have."""
        return self._resources.allocatable[rows, self._column]

    def requested(self, rows: Rows) -> IntArray:
        """What pods on them request."""
        requested: IntArray = self.capacity(rows) - self._resources.free[rows, self._column]
        return requested

    def counted(self, rows: Rows) -> IntArray:
        """Return what pods request, with a default where a container requests nothing."""
        if self._scored is None:
            return self.requested(rows)
        counted: IntArray = self.capacity(rows) - self._resources.scored.left[rows, self._scored]
        return counted


class AllocationScore(LocalScore):
    """What is requested of each resource against what there is, weighted."""

    name = NAME
    reads = ReadScope.USAGE

    def __init__(self, request: EvaluationRequest) -> None:
        signature, resources = request.signature, request.cluster.resources
        self._strategy = request.plugins.args_of(ResourceFitSettings).strategy
        asked = {**signature.requests, CPU: signature.nonzero[0], MEMORY: signature.nonzero[1]}
        self._parts = [
            (Amounts(name, resources), asked.get(name, 0), weight)
            for name, weight in self._strategy.resources
            if counts(name, asked)
        ]
        self._is_ratio = self._strategy.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO
        self._by_utilization = utilization_scores(self._strategy)
        self._cluster = request.cluster

    def points(self, rows: Rows) -> IntArray:
        """Points by the strategy, averaged over the resources by weight."""
        total: IntArray = np.zeros(len(self._cluster.alive[rows]), dtype=np.int64)
        weights = np.zeros_like(total)
        for amounts, wanted, weight in self._parts:
            capacity = amounts.capacity(rows)
            points = self._of_one(amounts.counted(rows) + wanted, capacity)
            takes_part = capacity > 0
            if self._is_ratio:
                takes_part &= points > 0
            total += np.where(takes_part, points * weight, 0)
            weights += np.where(takes_part, weight, 0)
        return self._average(total, np.maximum(weights, 1))

    def _average(self, total: IntArray, weights: IntArray) -> IntArray:
        """Rounded down; half up for a ratio."""
        if self._is_ratio:
            return (2 * total + weights) // (2 * weights)
        return total // weights

    def _of_one(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """The points of one resource; they mean nothing where there is none of it."""
        there = np.maximum(capacity, 1)
        used = np.clip(requested, 0, there)
        if self._strategy.type is StrategyType.LEAST_ALLOCATED:
            return (there - used) * MAX_SCORE // there
        utilization = used * MAX_SCORE // there
        return self._by_utilization[utilization] if self._is_ratio else utilization


def counts(name: str, requests: Mapping[str, int]) -> bool:
    """Whether a resource is scored for a pod: an extended one only if the pod requests it."""
    if is_scalar(name):
        return bool(requests.get(name))
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE)


def utilization_scores(strategy: AllocationStrategy) -> IntArray:
    """The score of each whole percentage of utilization, on the lines between the points."""
    points = [
        (utilization, score * (MAX_SCORE // MAX_SHAPE_SCORE))
        for utilization, score in strategy.shape
    ]
    return np.array([_on_lines(points, one) for one in range(MAX_SCORE + 1)], dtype=np.int64)


def _on_lines(points: list[tuple[int, int]], utilization: int) -> int:
    for index, (here, score) in enumerate(points):
        if utilization <= here:
            if index == 0:
                return score
            before, least = points[index - 1]
            rise = (score - least) * (utilization - before)
            # Towards zero, which is not down where the line falls.
            way = abs(rise) // (here - before)
            return least + (way if rise > 0 else -way)
    return points[-1][1] if points else 0


NONE, ONE, FULL = constant(0), constant(1), constant(MAX_SCORE)


class LeastAllocated(LocalScore):
    """The share of cpu and memory that would be left, on average."""

    name = NAME
    reads = ReadScope.USAGE

    def __init__(self, request: EvaluationRequest) -> None:
        self._columns = request.cluster.resources.scored
        self._pod = np.array(request.signature.nonzero, dtype=np.int64)

    def points(self, rows: Rows) -> IntArray:
        """Points by what would be left."""
        left: IntArray = pick(self._columns.left, rows) - self._pod
        np.maximum(left, NONE, out=left)
        left *= FULL
        left //= pick(self._columns.total, rows)
        points: IntArray = left[:, 0] + left[:, 1]
        if self._columns.lopsided:
            points //= self._columns.present[rows]
        else:
            points >>= ONE  # all have both
        return points


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score of what is requested, by the profile's strategy."""
    if request.plugins.args_of(ResourceFitSettings).strategy == DEFAULT_STRATEGY:
        return LeastAllocated(request)
    return AllocationScore(request)
