"""Shares by weight: everything is given out that somebody wants, and to nobody more than that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.queues import NOTHING, UNLIMITED, Resources
from bayplan.queues.policies import QueueDemand
from bayplan.queues.policies.proportion import deserved_by_weight

SLACK = 1.0
cpus = st.integers(0, 50)


def _cpu(amount: int) -> Resources:
    return Resources({"cpu": amount * 1000})


demands = st.builds(
    lambda weight, request, limit: QueueDemand(
        weight, _cpu(request), UNLIMITED if limit is None else _cpu(limit), NOTHING
    ),
    st.integers(1, 5),
    cpus,
    st.none() | cpus,
)


@given(st.dictionaries(st.sampled_from("abcde"), demands, min_size=1), cpus)
def test_all_is_given_out_that_is_wanted_and_nobody_gets_more(
    wanted: dict[str, QueueDemand], total: int
) -> None:
    deserved = deserved_by_weight(wanted, _cpu(total))
    most = {n: min(c.request["cpu"], c.real_capability["cpu"]) for n, c in wanted.items()}
    given_out = sum(one["cpu"] for one in deserved.values())
    assert all(deserved[name]["cpu"] <= most[name] + SLACK for name in wanted)
    assert abs(given_out - min(total * 1000, sum(most.values()))) <= SLACK


@given(st.integers(1, 5), st.integers(1, 5))
def test_who_wants_too_much_gets_by_weight(one: int, other: int) -> None:
    wanted = {
        name: QueueDemand(weight, _cpu(100), UNLIMITED, NOTHING)
        for name, weight in (("a", one), ("b", other))
    }
    deserved = deserved_by_weight(wanted, _cpu(10))
    assert abs(deserved["a"]["cpu"] * other - deserved["b"]["cpu"] * one) <= SLACK


def test_a_guarantee_is_deserved_whatever_is_asked_for() -> None:
    wanted = {
        "a": QueueDemand(1, NOTHING, UNLIMITED, _cpu(3)),
        "b": QueueDemand(1, _cpu(9), UNLIMITED, NOTHING),
    }
    deserved = deserved_by_weight(wanted, _cpu(10))
    assert (deserved["a"]["cpu"], round(deserved["b"]["cpu"])) == (3000, 7000)
