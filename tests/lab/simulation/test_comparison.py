"""Spread over seeds, and differences seed by seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.lab.simulation.comparison import band, difference, spread

pytestmark = pytest.mark.whole


Values = st.lists(st.one_of(st.none(), st.integers(-50, 50).map(float)), min_size=1, max_size=12)


@given(st.data())
def test_differences_are_taken_seed_by_seed(data: st.DataObject) -> None:
    ours = data.draw(Values)
    first = data.draw(
        st.lists(st.integers(0, 50).map(float), min_size=len(ours), max_size=len(ours))
    )
    found = difference(ours, first)
    pairs = [a - b for a, b in zip(ours, first, strict=True) if a is not None]
    assert found.less + found.same + found.more + found.unknown == len(ours)
    assert found.unknown == ours.count(None)
    assert found.mean == (pytest.approx(sum(pairs) / len(pairs), abs=1e-5) if pairs else None)
    assert found.min == (min(pairs) if pairs else None)


def test_a_figure_that_no_run_reached_has_no_mean() -> None:
    assert spread([None, None]).mean is None
    assert spread([None, 2.0]).mean == 2.0


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 9).map(float), min_size=n, max_size=n), min_size=1, max_size=8
        )
    )
)
def test_a_band_holds_all_runs(runs: list[list[float]]) -> None:
    found = band(runs)
    for index in range(len(runs[0])):
        column = sorted(run[index] for run in runs)
        lines = (found.min, found.q1, found.median, found.q3, found.max)
        values = [line[index] for line in lines]
        assert values == sorted(values)
        assert (values[0], values[-1]) == (column[0], column[-1])
