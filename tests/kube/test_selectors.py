"""Label selectors match as the API machinery does, and equal ones are one key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.meta import LabelSelector, LabelSelectorRequirement
from bayplan.kube.selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    Selector,
    SelectorError,
    compile_selector,
    requirement,
    selector_from_labels,
)
from tests.builders import LabelOperator, expression, selector

keys = st.sampled_from(["app", "tier", "example.com/zone"])
values = st.sampled_from(["", "a", "b", "c"])
label_sets = st.dictionaries(keys, values, max_size=3)


@st.composite
def requirements(draw: st.DrawFn) -> LabelSelectorRequirement:
    operator: LabelOperator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    listed = draw(st.lists(values, min_size=1, max_size=3)) if operator.endswith("In") else []
    return LabelSelectorRequirement(key=draw(keys), operator=operator, values=listed)


selectors = st.builds(
    LabelSelector, match_labels=label_sets, match_expressions=st.lists(requirements(), max_size=3)
)


def test_no_selector_matches_nothing() -> None:
    assert not compile_selector(None).matches({})
    assert compile_selector(None).matches_nothing


def test_an_empty_selector_matches_everything() -> None:
    assert compile_selector(LabelSelector()).matches({"a": "b"})
    assert compile_selector(LabelSelector()).matches_everything
    assert selector_from_labels({}) == EVERYTHING


@pytest.mark.parametrize(
    ("operator", "listed", "labels", "matches"),
    [
        ("In", ["a", "b"], {"k": "a"}, True),
        ("In", ["a", "b"], {"k": "c"}, False),
        ("In", ["a"], {}, False),
        ("In", [""], {"k": ""}, True),
        ("In", [""], {}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {}, True),
        ("DoesNotExist", [], {"k": ""}, False),
        ("Gt", ["5"], {"k": "6"}, True),
        ("Gt", ["5"], {"k": "5"}, False),
        ("Gt", ["5"], {"k": "x"}, False),
        ("Gt", ["5"], {}, False),
        ("Lt", ["5"], {"k": "4"}, True),
        ("Lt", ["5"], {"k": "-4"}, True),
        ("Lt", ["5"], {"k": "5"}, False),
        ("Lt", ["5"], {"k": "9999999999999999999999"}, False),
    ],
)
def test_every_operator_matches_as_kubernetes_does(
    operator: Operator, listed: list[str], labels: dict[str, str], matches: bool
) -> None:
    assert requirement("k", operator, listed).matches(labels) is matches
    assert EVERYTHING.with_requirement("k", operator, listed).matches(labels) is matches


@pytest.mark.parametrize(
    ("key", "operator", "listed"),
    [
        ("k", "In", []),
        ("k", "NotIn", []),
        ("k", "Exists", ["a"]),
        ("k", "DoesNotExist", ["a"]),
        ("k", "Gt", ["a"]),
        ("k", "Gt", ["1", "2"]),
        ("k", "Lt", []),
        ("k", "Gt", ["9999999999999999999999"]),
        ("k", "Near", ["a"]),
        ("", "Exists", []),
        ("-k", "Exists", []),
        ("a/b/c", "Exists", []),
        ("UPPER.example/k", "Exists", []),
        ("k" * 64, "Exists", []),
        ("k", "In", ["white space"]),
        ("k", "In", ["v" * 64]),
        ("k", "In", ["a", "-"]),
    ],
)
def test_what_the_api_server_refuses_is_an_error_that_names_the_key(
    key: str, operator: str, listed: list[str]
) -> None:
    with pytest.raises(SelectorError) as refused:
        requirement(key, operator, listed)
    assert repr(key)[:60] in str(refused.value)


def test_an_error_names_the_value_and_stays_short() -> None:
    with pytest.raises(SelectorError, match="not!ok"):
        compile_selector(selector(app="not!ok"))
    with pytest.raises(SelectorError) as refused:
        compile_selector(selector({"k" * 10_000_000: "v" * 10_000_000}))
    assert len(str(refused.value)) < 300


def test_a_plain_map_is_taken_unchecked() -> None:
    assert selector_from_labels({"not a key!": "x"}).matches({"not a key!": "x"})


def test_labels_and_the_same_expression_are_one_key() -> None:
    assert compile_selector(selector(app="web")) == compile_selector(expression("app", "In", "web"))
    assert compile_selector(selector(app="web")) == selector_from_labels({"app": "web"})
    assert compile_selector(selector(app="web")) != compile_selector(selector(app="db"))


def test_a_requirement_more_narrows_and_nothing_stays_nothing() -> None:
    narrowed = compile_selector(selector(app="web")).with_requirement("hash", "In", ["1"])
    assert narrowed.matches({"app": "web", "hash": "1"})
    assert not narrowed.matches({"app": "web", "hash": "2"})
    assert NOTHING.with_requirement("hash", "In", ["1"]) is NOTHING


@given(selectors)
def test_order_and_repetition_do_not_matter(written: LabelSelector) -> None:
    shuffled = LabelSelector(
        match_labels=dict(reversed(written.match_labels.items())),
        match_expressions=[
            LabelSelectorRequirement(key=e.key, operator=e.operator, values=e.values[::-1] * 2)
            for e in reversed(written.match_expressions * 2)
        ],
    )
    assert compile_selector(shuffled) == compile_selector(written)
    assert hash(compile_selector(shuffled)) == hash(compile_selector(written))


@given(selectors, label_sets)
def test_it_matches_where_every_requirement_does(
    written: LabelSelector, labels: dict[str, str]
) -> None:
    compiled = compile_selector(written)
    assert compiled.requirements is not None
    assert compiled.matches(labels) == all(r.matches(labels) for r in compiled.requirements)


@given(selectors, selectors, label_sets)
def test_equal_selectors_match_alike(
    one: LabelSelector, other: LabelSelector, labels: dict[str, str]
) -> None:
    first, second = compile_selector(one), compile_selector(other)
    if first == second:
        assert first.matches(labels) == second.matches(labels)
    assert isinstance(first, Selector)
    assert first != "not a selector"
