"""The models for HiGHS, if it is installed: a lower bound, and how often to use each filling.

The bound is the optimum with whole nodes and fractional pods: pods use no more of a resource than
the nodes have, and a template's nodes hold no more pods of a group than fit. The proved bound is
used, also if the solver runs out of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from bayplan.autoscaler.expanders.mix.fillings import PackingProblem
from bayplan.fit.state.columns import FloatArray, IntArray

SECONDS = 0.5
MOST_BRANCHES = 200
DEARER = 1000.0
"""The penalty of a pod that is not helped, as a multiple of the most expensive node."""


@dataclass(slots=True)
class _Rows:
    """The rows of a sparse matrix under construction."""

    rows: list[IntArray] = field(default_factory=list)
    columns: list[IntArray] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)
    lower: list[FloatArray] = field(default_factory=list)
    upper: list[FloatArray] = field(default_factory=list)
    count: int = 0

    def entries(self, rows: IntArray, columns: IntArray, values: FloatArray) -> None:
        """Add entries of the next rows, numbered from the first of them."""
        self.rows.append(rows + self.count)
        self.columns.append(columns)
        self.values.append(values)

    def close(self, lower: FloatArray, upper: FloatArray) -> None:
        """Complete these rows, with their bounds."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.count += len(lower)


def bound(problem: PackingProblem) -> float:
    """Return the lower bound of the cost of helping all pods."""
    pairs = np.argwhere(problem.pods_per_node > 0)
    rows = _Rows()
    _resource_rows(rows, problem, pairs)
    _rooms(rows, problem, pairs)
    templates = len(problem.costs)
    everyone = problem.wanted.astype(np.float64) * problem.takeable
    rows.entries(pairs[:, 0], templates + np.arange(len(pairs)), np.ones(len(pairs)))
    rows.close(everyone, everyone)
    costs = np.concatenate([problem.costs, np.zeros(len(pairs))])
    upper = np.concatenate([problem.most, np.full(len(pairs), highspy.kHighsInf)])
    solved = _solved(rows, costs, upper, whole=templates)
    return max(float(solved.getInfo().mip_dual_bound), 0.0)


def filling_counts(
    problem: PackingProblem, fillings: Sequence[tuple[int, IntArray]]
) -> tuple[FloatArray, FloatArray]:
    """Return how often each filling is used in the optimum, fractionally, and the value of a pod of
    each group.
    """
    groups = len(problem.wanted)
    counts = np.array([one for _, one in fillings])
    at, number = np.nonzero(counts)
    rows = _Rows()
    rows.entries(number, at, counts[at, number].astype(np.float64))
    every = np.arange(groups)
    rows.entries(every, len(fillings) + every, np.ones(groups))
    rows.close(problem.wanted.astype(np.float64), np.full(groups, highspy.kHighsInf))
    template = np.array([one for one, _ in fillings])
    columns = np.arange(len(fillings))
    rows.entries(template, columns, np.ones(len(fillings)))
    rows.close(_none(len(problem.costs)), problem.most.astype(np.float64))
    rows.entries(np.zeros_like(columns), columns, np.ones(len(fillings)))
    rows.close(_none(1), np.array([float(problem.total)]))
    penalty = np.full(groups, DEARER * float(problem.costs.max()))
    costs = np.concatenate([problem.costs[template], penalty])
    solved = _solved(rows, costs, np.full(len(costs), highspy.kHighsInf)).getSolution()
    often = np.array(solved.col_value)[: len(fillings)]
    worth = np.clip(np.array(solved.row_dual)[:groups], 0.0, None)
    return often, worth


def _solved(rows: _Rows, costs: FloatArray, upper: FloatArray, whole: int = 0) -> highspy.Highs:
    """Solve for the minimum cost; the first `whole` columns are integers."""
    row, model = np.concatenate(rows.rows), highspy.HighsLp()
    order = np.argsort(row, kind="stable")
    model.num_col_, model.num_row_ = len(costs), rows.count
    model.col_cost_, model.col_lower_, model.col_upper_ = costs, np.zeros(len(costs)), upper
    model.row_lower_, model.row_upper_ = np.concatenate(rows.lower), np.concatenate(rows.upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    starts = np.cumsum(np.bincount(row, minlength=rows.count))
    model.a_matrix_.start_ = np.concatenate([[0], starts])
    model.a_matrix_.index_ = np.concatenate(rows.columns)[order]
    model.a_matrix_.value_ = np.concatenate(rows.values)[order]
    if whole:
        kinds = (highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous)
        model.integrality_ = [kinds[0]] * whole + [kinds[1]] * (len(costs) - whole)
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, setting in _SETTINGS.items():
        highs.setOptionValue(name, setting)
    highs.passModel(model)
    highs.run()
    return highs


_SETTINGS = {
    "output_flag": False,
    "threads": 1,
    "time_limit": SECONDS,
    "mip_max_nodes": MOST_BRANCHES,
}


def _resource_rows(rows: _Rows, problem: PackingProblem, pairs: IntArray) -> None:
    """Add the rows by which pods use no more of a resource than the nodes have."""
    _, templates, resources = problem.parts.shape
    taken = problem.parts[pairs[:, 0], pairs[:, 1]]
    at, resource = np.nonzero(taken)
    rows.entries(pairs[at, 1] * resources + resource, templates + at, taken[at, resource])
    every = np.arange(templates * resources)
    rows.entries(every, every // resources, -np.ones(len(every)))
    rows.close(_none(len(every)), np.zeros(len(every)))


def _rooms(rows: _Rows, problem: PackingProblem, pairs: IntArray) -> None:
    """Add the rows that limit pods of a group by what fits, and nodes by their maximum."""
    templates, each = len(problem.costs), np.arange(len(pairs))
    rows.entries(each, templates + each, np.ones(len(pairs)))
    pods_per_node = np.minimum(
        problem.pods_per_node[pairs[:, 0], pairs[:, 1]], problem.wanted[pairs[:, 0]]
    )
    rows.entries(each, pairs[:, 1], -pods_per_node.astype(np.float64))
    rows.close(_none(len(pairs)), np.zeros(len(pairs)))
    rows.entries(np.zeros(templates, dtype=np.int64), np.arange(templates), np.ones(templates))
    rows.close(_none(1), np.array([float(problem.total)]))


def _none(count: int) -> FloatArray:
    return np.full(count, -highspy.kHighsInf)
