"""NodeResourcesBalancedAllocation: nodes are better whose resources are used evenly.

A node gets 75 where the pod changes nothing, up to 100 where it makes the use more even, down to 50
where less even. By default cpu and memory are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayplan.fit.plugins.arguments import Arguments, PluginArguments, ResourceSpec, require
from bayplan.fit.plugins.base import MAX_SCORE, EvaluationRequest, LocalScore, ReadScope, Score
from bayplan.fit.plugins.node_resources_fit.filter import NAME as FITTING
from bayplan.fit.plugins.node_resources_fit.score import Amounts, counts
from bayplan.fit.plugins.plugin import SCORING, SchedulerPlugin
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray, Rows, constant, pick
from bayplan.kube.resources import CPU, MEMORY

NAME = "NodeResourcesBalancedAllocation"
ONE = constant(1)
HALF, WHOLE, MOST = np.array(0.5), np.array(1.0), np.array(float(MAX_SCORE))


DEFAULT_RESOURCES = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class BalancedResources:
    """The resources whose use is balanced."""

    names: tuple[str, ...] = DEFAULT_RESOURCES


class Balanced(LocalScore):
    """How much more even the use of cpu and memory becomes."""

    name = NAME
    reads = ReadScope.USAGE

    def __init__(self, request: EvaluationRequest) -> None:
        self._columns = request.cluster.resources.scored
        requests = request.signature.requests
        self._pod = np.array([requests.get(CPU, 0), requests.get(MEMORY, 0)], dtype=np.float64)
        self._may_exceed = not request.plugins.asks(FITTING)
        """Whether pods may go where they do not fit."""

    def points(self, rows: Rows) -> IntArray:
        """Points by the change of balance."""
        columns = self._columns
        shares = pick(columns.used, rows) + self._pod
        shares /= pick(columns.total_float, rows)
        if columns.overcommitted or self._may_exceed:
            np.minimum(shares, WHOLE, out=shares)
        even = shares[:, 0] - shares[:, 1]
        even *= HALF
        np.abs(even, out=even)
        np.subtract(WHOLE, even, out=even)
        if columns.lopsided:
            even[columns.present[rows] < 2] = 1.0
        even *= MOST
        points = even.astype(np.int64)
        points += columns.unevenness[rows]
        points >>= ONE  # halves, as it is never negative
        return points


class BalancedScore(LocalScore):
    """How much more even the use of several resources becomes."""

    name = NAME
    reads = ReadScope.USAGE

    def __init__(self, request: EvaluationRequest) -> None:
        requests, resources = request.signature.requests, request.cluster.resources
        self._parts = [
            (Amounts(name, resources), requests.get(name, 0))
            for name in request.plugins.args_of(BalancedResources).names
            if counts(name, requests)
        ]
        self._cluster = request.cluster

    def points(self, rows: Rows) -> IntArray:
        """Points by the change of balance: 75 where nothing changes."""
        size = len(self._cluster.alive[rows])
        before, after = Evenness(size), Evenness(size)
        for amounts, wanted in self._parts:
            capacity, requested = amounts.capacity(rows), amounts.requested(rows)
            before.add(requested, capacity)
            after.add(requested + wanted, capacity)
        change = after.points() - before.points()
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + change) // 2


class Evenness:
    """How even the shares of resources in use are."""

    def __init__(self, size: int) -> None:
        self._shares: list[tuple[FloatArray, BoolArray]] = []
        self._size = size

    def add(self, requested: IntArray, capacity: IntArray) -> None:
        """One more resource."""
        there = capacity > 0
        share = requested.astype(np.float64) / np.maximum(capacity, 1).astype(np.float64)
        self._shares.append((np.where(there, np.minimum(share, 1.0), 0.0), there))

    def points(self) -> IntArray:
        """100 where all shares are equal, less by their standard deviation."""
        number = np.zeros(self._size, dtype=np.int64)
        total = np.zeros(self._size)
        for share, there in self._shares:
            number += there
            total += share
        deviation = np.where(number == 2, self._half_difference(), 0.0)
        if len(self._shares) > 2:
            deviation = np.where(number > 2, self._deviation(total, number), deviation)
        points: IntArray = ((1 - deviation) * MAX_SCORE).astype(np.int64)
        return points

    def _half_difference(self) -> FloatArray:
        """Half of what lies between the first two shares."""
        first, second = np.zeros(self._size), np.zeros(self._size)
        seen = np.zeros(self._size, dtype=np.int64)
        for share, there in self._shares:
            first = np.where(there & (seen == 0), share, first)
            second = np.where(there & (seen == 1), share, second)
            seen += there
        difference: FloatArray = np.abs((first - second) / 2)
        return difference

    def _deviation(self, total: FloatArray, number: IntArray) -> FloatArray:
        some = np.maximum(number, 1)
        mean = total / some
        squares = np.zeros(self._size)
        for share, there in self._shares:
            squares = squares + np.where(there, (share - mean) * (share - mean), 0.0)
        deviation: FloatArray = np.sqrt(squares / some)
        return deviation


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score for even use, unless the pod requests none of what is balanced."""
    requests = request.signature.requests
    balanced = request.plugins.args_of(BalancedResources).names
    if not any(requests.get(name) for name in balanced):
        return None
    if balanced == DEFAULT_RESOURCES:
        return Balanced(request)
    return BalancedScore(request)


class NodeResourcesBalancedAllocationArgs(PluginArguments):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: list[ResourceSpec] = []


def _compile(args: NodeResourcesBalancedAllocationArgs, field: str) -> BalancedResources:
    names = [resource.name for resource in args.resources]
    for index, resource in enumerate(args.resources):
        place = f"{field}.resources[{index}]"
        require(resource.weight in {0, 1}, f"{place}.weight", "must be 1")
        require(names.index(resource.name) == index, f"{place}.name", "is there twice")
    return BalancedResources(tuple(names) or DEFAULT_RESOURCES)


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=SCORING,
    node_fields=("status.allocatable",),
    score=compile_score,
    arguments=Arguments(NodeResourcesBalancedAllocationArgs, _compile),
)
