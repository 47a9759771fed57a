"""Amounts of resources, and limits."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.meta import Quantity
from bayplan.queues.resources import (
    NOTHING,
    UNLIMITED,
    AmountError,
    Resources,
    node_amounts,
    pod_amounts,
    read_amounts,
    write_amounts,
)
from tests.builders import make_node, make_pod

amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "a/b"]), st.integers(0, 9))
values = st.builds(Resources, amounts)


def test_cpu_and_other_resources_are_in_thousandths_and_memory_and_pods_are_not() -> None:
    written: dict[str, Quantity] = {
        "cpu": "1500m",
        "memory": "1Ki",
        "pods": 3,
        "nvidia.com/gpu": "2",
    }
    assert read_amounts(written) == Resources(
        {"cpu": 1500, "memory": 1024, "pods": 3, "nvidia.com/gpu": 2000}
    )


def test_what_no_node_can_have_is_not_counted() -> None:
    assert read_amounts({"count/jobs": "4", "requests.storage": "1Gi"}) == NOTHING


@pytest.mark.parametrize("written", ["-1", "x", "", "1e999"])
def test_an_amount_that_cannot_be_reckoned_with_names_its_resource(written: str) -> None:
    with pytest.raises(AmountError, match="cpu"):
        read_amounts({"cpu": written})


def test_a_pod_counts_itself() -> None:
    pod = make_pod("p").cpu("1").container(memory="1Ki").obj()
    assert pod_amounts(pod) == Resources({"cpu": 1000, "memory": 1024, "pods": 1})


def test_amounts_are_written_as_they_are_read() -> None:
    written = {"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": "2", "pods": "3"}
    assert write_amounts(read_amounts(written)) == written


def test_what_a_limit_does_not_name_is_unlimited() -> None:
    limit = Resources({"cpu": 1000}, rest=inf)
    assert Resources({"cpu": 1001, "memory": 5}).over(limit, ["cpu", "memory"]) == ["cpu"]
    assert limit.least(UNLIMITED) == limit


def test_only_the_count_of_pods_is_nothing() -> None:
    assert Resources({"pods": 4, "cpu": 0}).is_nothing
    assert not Resources({"cpu": 1}).is_nothing


@given(values, values)
def test_what_is_added_and_taken_away_again_leaves_no_dust(a: Resources, b: Resources) -> None:
    assert a + b - b == a
    assert a.least(b) + a.beyond(b) == a
    assert a.most(b) == a + b.beyond(a)
    assert a.fits(a.most(b))
    assert hash(a + NOTHING) == hash(a)


def test_what_is_equal_is_not_unequal() -> None:
    one, same = Resources({"cpu": 1000, "pods": 0}), Resources({"cpu": 1000})
    assert (one == same, one != same) == (True, False)
    assert (one == NOTHING, one != NOTHING) == (False, True)


def test_a_node_whose_amounts_cannot_be_read_has_nothing() -> None:
    assert node_amounts(make_node("n").capacity(cpu="2").obj())["cpu"] == 2000
    assert node_amounts(make_node("n").capacity(cpu="-1").obj()) == NOTHING
