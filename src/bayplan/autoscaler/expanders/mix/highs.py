"""What HiGHS is asked, if it is installed: a bound, and which fillings to buy how often.

The bound is the best answer to figures with nodes in whole numbers and pods in parts: what pods
take of a thing is no more than its nodes have, and no more pods of one group are on a template's
nodes than those have room for. What has been proved of it counts, however far it came in its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from bayplan.autoscaler.expanders.mix.packing import Figures
from bayplan.fit.state.columns import FloatArray, IntArray

SECONDS = 0.5
MOST_BRANCHES = 200
DEARER = 1000.0
"""How many times the dearest node it costs not to help a pod."""


@dataclass(slots=True)
class _Rows:
    """The rows of a matrix, as they are written."""

    rows: list[IntArray] = field(default_factory=list)
    columns: list[IntArray] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)
    lower: list[FloatArray] = field(default_factory=list)
    upper: list[FloatArray] = field(default_factory=list)
    count: int = 0

    def entries(self, rows: IntArray, columns: IntArray, values: FloatArray) -> None:
        """Entries of rows that come next, counted from the first of them."""
        self.rows.append(rows + self.count)
        self.columns.append(columns)
        self.values.append(values)

    def close(self, lower: FloatArray, upper: FloatArray) -> None:
        """These rows are complete, between these bounds."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.count += len(lower)


def bound(figures: Figures) -> float:
    """What any answer to figures costs at the least, if it helps all pods."""
    pairs = np.argwhere(figures.rooms > 0)
    rows = _Rows()
    _things(rows, figures, pairs)
    _rooms(rows, figures, pairs)
    templates = len(figures.costs)
    everyone = figures.wanted.astype(np.float64) * figures.takeable
    rows.entries(pairs[:, 0], templates + np.arange(len(pairs)), np.ones(len(pairs)))
    rows.close(everyone, everyone)
    costs = np.concatenate([figures.costs, np.zeros(len(pairs))])
    upper = np.concatenate([figures.most, np.full(len(pairs), highspy.kHighsInf)])
    solved = _solved(rows, costs, upper, whole=templates)
    return max(float(solved.getInfo().mip_dual_bound), 0.0)


def how_often(
    figures: Figures, fillings: Sequence[tuple[int, IntArray]]
) -> tuple[FloatArray, FloatArray]:
    """How often each filling of a template is best bought, in parts; and what a pod of each group
    is then worth.
    """
    groups = len(figures.wanted)
    counts = np.array([one for _, one in fillings])
    at, number = np.nonzero(counts)
    rows = _Rows()
    rows.entries(number, at, counts[at, number].astype(np.float64))
    every = np.arange(groups)
    rows.entries(every, len(fillings) + every, np.ones(groups))
    rows.close(figures.wanted.astype(np.float64), np.full(groups, highspy.kHighsInf))
    template = np.array([one for one, _ in fillings])
    columns = np.arange(len(fillings))
    rows.entries(template, columns, np.ones(len(fillings)))
    rows.close(_none(len(figures.costs)), figures.most.astype(np.float64))
    rows.entries(np.zeros_like(columns), columns, np.ones(len(fillings)))
    rows.close(_none(1), np.array([float(figures.total)]))
    penalty = np.full(groups, DEARER * float(figures.costs.max()))
    costs = np.concatenate([figures.costs[template], penalty])
    solved = _solved(rows, costs, np.full(len(costs), highspy.kHighsInf)).getSolution()
    often = np.array(solved.col_value)[: len(fillings)]
    worth = np.clip(np.array(solved.row_dual)[:groups], 0.0, None)
    return often, worth


def _solved(rows: _Rows, costs: FloatArray, upper: FloatArray, whole: int = 0) -> highspy.Highs:
    """The least cost, of which the first so many columns are whole numbers."""
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


def _things(rows: _Rows, figures: Figures, pairs: IntArray) -> None:
    """What pods take of a thing is no more than the nodes have."""
    _, templates, things = figures.parts.shape
    taken = figures.parts[pairs[:, 0], pairs[:, 1]]
    at, thing = np.nonzero(taken)
    rows.entries(pairs[at, 1] * things + thing, templates + at, taken[at, thing])
    every = np.arange(templates * things)
    rows.entries(every, every // things, -np.ones(len(every)))
    rows.close(_none(len(every)), np.zeros(len(every)))


def _rooms(rows: _Rows, figures: Figures, pairs: IntArray) -> None:
    """No more pods of a group than its nodes have room for, and no more nodes than there may be."""
    templates, each = len(figures.costs), np.arange(len(pairs))
    rows.entries(each, templates + each, np.ones(len(pairs)))
    rooms = np.minimum(figures.rooms[pairs[:, 0], pairs[:, 1]], figures.wanted[pairs[:, 0]])
    rows.entries(each, pairs[:, 1], -rooms.astype(np.float64))
    rows.close(_none(len(pairs)), np.zeros(len(pairs)))
    rows.entries(np.zeros(templates, dtype=np.int64), np.arange(templates), np.ones(templates))
    rows.close(_none(1), np.array([float(figures.total)]))


def _none(count: int) -> FloatArray:
    return np.full(count, -highspy.kHighsInf)
