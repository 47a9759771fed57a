"""Whatever happens, counts add up, integrals are exact, and quantiles are what they should be."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.facts import PodFacts, read_pod
from bayplan.lab.measurement.nodes import VolumeMeter, share_of
from bayplan.lab.measurement.pods import PodMeter
from bayplan.lab.measurement.series import Grid, SeriesSet, StepSeries, WaitTimes

pytestmark = pytest.mark.whole


Steps = st.lists(st.tuples(st.floats(0.0, 120.0), st.integers(0, 50)), max_size=30)
Times = st.lists(st.integers(0, 30).map(float), max_size=40)


@given(Steps, st.integers(1, 37))
def test_the_means_of_a_series_have_its_exact_integral(
    steps: list[tuple[float, int]], points: int
) -> None:
    steps.sort(key=lambda one: one[0])
    series = StepSeries(Grid(100.0, points))
    for now, value in steps:
        series.set(now, value)
    ends = [*steps, (math.inf, 0)]
    wanted = sum(
        value * (min(end, 100.0) - min(start, 100.0)) for (start, value), (end, _) in pairwise(ends)
    )
    assert series.integral() == pytest.approx(wanted)
    assert sum(series.means()) * 100.0 / points == pytest.approx(wanted)


@given(st.floats(0, 100), st.floats(0, 100), st.integers(1, 20))
def test_what_turns_out_later_is_taken_back_exactly(a: float, b: float, points: int) -> None:
    start, end = min(a, b), max(a, b)
    series = StepSeries(Grid(100.0, points))
    series.set(start, 3)
    series.set(end, 0)
    series.correct(start, end, -3)
    assert series.means() == pytest.approx([0.0] * points)


@given(Times.filter(bool), st.floats(0.01, 1.0))
def test_without_censored_pods_quantiles_are_as_everybody_counts(
    done: list[float], share: float
) -> None:
    enough = [time for time in done if sum(one <= time for one in done) >= share * len(done) - 1e-9]
    assert WaitTimes(done).quantile(share) == min(enough)


@given(Times, Times)
def test_the_share_within_a_time_is_kaplan_and_meiers(
    done: list[float], censored: list[float]
) -> None:
    times = np.arange(0.0, 31.0)
    found = WaitTimes(done, censored).within(times)
    everybody = done + censored
    for time, share in zip(times, found, strict=True):
        survive = 1.0
        for moment in sorted({one for one in done if one <= time}):
            at_risk = sum(one >= moment for one in everybody)
            survive *= 1 - done.count(moment) / at_risk
        assert share == pytest.approx(1 - survive)


def test_pods_that_never_ran_are_not_left_out() -> None:
    waits = WaitTimes([10.0] * 5, [100.0] * 5)
    assert waits.quantile(0.5) == 10.0
    assert waits.quantile(0.9) is None


Pods = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(
            ["", "refused", "sent back", "gated", "node", "Running", "Succeeded", "Failed", "gone"]
        ),
        st.integers(0, 1),
    ),
    max_size=60,
)


CONDITIONS = {
    "refused": ("Unschedulable", "0/1 nodes are available"),
    "sent back": ("SchedulerError", "binding volumes: provisioning failed"),
    "gated": ("NotAdmitted", "over quota"),
}


def _pod(number: int, state: str, uid: int) -> PodFacts | None:
    if state == "gone":
        return None
    phase = state if state[:1].isupper() else "Pending"
    reason, message = CONDITIONS.get(state, ("", ""))
    node = "" if state in ("", *CONDITIONS) else "n"
    condition = (
        f'{{"type":"PodScheduled","status":"False","reason":"{reason}","message":"{message}"}}'
        if reason
        else ""
    )
    text = (
        f'{{"metadata":{{"name":"p{number}","namespace":"d","uid":"{uid}"}},"spec":{{"nodeName":'
        f'"{node}"}},"status":{{"phase":"{phase}","conditions":[{condition}]}}}}'
    )
    return read_pod(text.encode())


@given(Pods)
def test_every_pod_is_counted_once_at_every_moment(
    changes: list[tuple[int, str, int]],
) -> None:
    book = SeriesSet(Grid(100.0, 10))
    meter = PodMeter(book, lambda *_: "resources", lambda _: False)
    for now, (number, state, uid) in enumerate(changes):
        key = ObjectKey("pods", "d", f"p{number}")
        if now % 7 == 3:
            meter.attach_failed(key, str(uid), now)
        meter.observe(key, _pod(number, state, uid), now)
        stages = {name: one.value for name, one in book.family("pods")}
        counts = meter.counts
        assert counts["created"] == sum(stages.values()) + counts["ended"] + counts["removed"]
        for stage in ("waiting", "stuck"):
            causes = sum(one.value for _, one in book.family(stage))
            assert causes == stages.get(stage, 0)
        assert min([*stages.values(), 0]) == 0
    meter.finish(100.0)
    assert len(meter.waits) == meter.counts["created"]
    assert len(meter.waits.done) == meter.counts["ran"]


def test_a_pod_is_stuck_while_a_node_that_it_was_sent_to_cannot_have_its_volume() -> None:
    book, binding = SeriesSet(Grid(100.0, 10)), [False]
    meter = PodMeter(book, lambda *_: "resources", lambda _: binding[0])
    key = ObjectKey("pods", "d", "p0")

    def stuck_after(state: str, now: float) -> dict[str, float]:
        meter.observe(key, _pod(0, state, 1), now)
        return {cause: one.value for cause, one in book.family("stuck") if one.value}

    assert stuck_after("refused", 1) == {}
    assert stuck_after("sent back", 2) == {"provisioning of volumes": 1}
    binding[0] = True
    assert stuck_after("sent back", 3) == {"provisioning of volumes": 1}, "tried again"
    assert meter.waiting_by_cause() == [("provisioning of volumes", 1)]
    assert stuck_after("node", 4) == {}
    meter.attach_failed(key, "1", 5)
    assert stuck_after("node", 6) == {"attachment of volumes": 1}
    assert meter.waiting_by_cause() == []
    assert stuck_after("Running", 7) == {}
    assert meter.counts["stuck"] == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.dictionaries(st.sampled_from("xy"), st.integers(0, 9)))
    )
)
def test_limits_of_nodes_add_up(changes: list[tuple[str, dict[str, int]]]) -> None:
    book, known = SeriesSet(Grid(100.0, 10)), {}
    meter = VolumeMeter(book)
    for now, (node, limits) in enumerate(changes):
        meter.limits(node, limits, now)
        known[node] = limits
    for driver, series in book.family("limits"):
        assert series.value == sum(one.get(driver, 0) for one in known.values())


def test_a_queues_share_is_of_what_it_deserves_or_else_of_what_it_may_have() -> None:
    status = {"allocated": {"cpu": "3", "memory": "1Gi"}}
    deserved = {"deserved": {"cpu": "4"}, "capability": {"cpu": "30"}}
    assert share_of({"spec": deserved, "status": status}) == 0.75
    assert share_of({"spec": {"capability": {"cpu": "30"}}, "status": status}) == 0.1
    assert share_of({"spec": {}, "status": status}) is None
    assert share_of({"spec": {"deserved": {"cpu": "many"}}, "status": status}) is None
