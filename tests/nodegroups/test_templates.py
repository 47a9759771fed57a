"""What a template says of its drivers: by annotation, by allocatable, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.nodegroups import CSI_DRIVERS, limits_text, template_of
from bayplan.nodegroups.templates import parse_limits, read_limits
from tests.builders import make_node

names = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z]{1,5}){1,2}", fullmatch=True)


@given(st.dictionaries(names, st.none() | st.integers(0, 2**31 - 1), max_size=5))
def test_limits_are_read_as_they_were_written(limits: dict[str, int | None]) -> None:
    assert read_limits(limits_text(limits)) == (limits, ())


def test_zero_is_zero_and_none_is_no_limit() -> None:
    assert read_limits(" a.example=0 , b.example = none,,c.example=7") == (
        {"a.example": 0, "b.example": None, "c.example": 7},
        (),
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("a.example", "whole number"),
        ("a.example=", "whole number"),
        ("a.example=many", "whole number"),
        ("a.example=-1", "whole number"),
        ("a.example=2147483648", "whole number"),
        ("a.example=٣", "whole number"),
        ("=3", "is not a driver name"),
        ("a b=3", "is not a driver name"),
    ],
)
def test_a_limit_that_cannot_be_read_is_left_out_and_said(entry: str, said: str) -> None:
    limits, problems = read_limits(f"{entry},z.example=2")
    assert limits == {"z.example": 2}
    assert len(problems) == 1
    assert said in problems[0]
    assert entry in problems[0]


def test_a_driver_that_is_there_twice_is_not_counted_on() -> None:
    limits, problems = read_limits("a.example=1,a.example=2,a.example=3")
    assert limits == {}
    assert len(problems) == 2


def test_allocatable_says_the_limits_where_there_is_no_annotation() -> None:
    node = make_node("n").capacity({"attachable-volumes-csi-a.example": "4", "cpu": "1"}).obj()
    found = template_of(node)
    assert found.csi_node is not None
    (driver,) = found.csi_node.spec.drivers
    assert driver.name == "a.example"
    assert driver.allocatable is not None
    assert driver.allocatable.count == 4


def test_an_annotation_is_the_whole_truth() -> None:
    node = make_node("n").capacity({"attachable-volumes-csi-a.example": "4"}).obj()
    node.metadata.annotations = {CSI_DRIVERS: ""}
    found = template_of(node)
    assert found.csi_node is not None
    assert found.csi_node.spec.drivers == []


def test_a_count_in_allocatable_that_is_none_is_said() -> None:
    node = make_node("n").capacity({"attachable-volumes-csi-a.example": "-4"}).obj()
    found = template_of(node)
    assert found.csi_node is not None
    assert found.csi_node.spec.drivers == []
    assert "attachable-volumes-csi-a.example" in found.problems[0]


def test_a_node_that_says_nothing_of_drivers_has_no_csi_node() -> None:
    assert template_of(make_node("n").obj()).csi_node is None


def test_limits_that_are_said_one_by_one_are_read_alike() -> None:
    said = {"a.example": "0", "b.example": "none", "c.example": "many", "d e": "1"}
    limits, problems = parse_limits(said, "tag csi-driver/")
    assert limits == {"a.example": 0, "b.example": None}
    assert [one.partition(":")[0] for one in problems] == [
        "tag csi-driver/c.example",
        "tag csi-driver/d e",
    ]
