"""Node selectors match labels and fields, and what cannot be read matches nothing."""

from __future__ import annotations

import pytest

from bayplan.kube.nodes import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from bayplan.kube.selectors import compile_node_selector, compile_node_term
from tests.builders import NodeOperator, make_node, name_term, node_term

NODE = make_node("n1").labels(disk="ssd", gen="7").obj()


def compiled(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=list(terms))


@pytest.mark.parametrize(
    ("operator", "listed", "matches"),
    [
        ("In", ["6", "7"], True),
        ("NotIn", ["7"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["6"], True),
        ("Gt", ["7"], False),
        ("Lt", ["8"], True),
        ("Lt", ["7"], False),
    ],
)
def test_every_operator_applies_to_labels(
    operator: NodeOperator, listed: list[str], matches: bool
) -> None:
    assert compile_node_term(node_term("gen", operator, *listed)).matches(NODE) is matches


def test_one_matching_term_is_enough() -> None:
    selector = compiled(node_term("disk", "In", "hdd"), node_term("gen", "In", "7"))
    assert compile_node_selector(selector).matches(NODE)


def test_all_expressions_of_a_term_must_hold() -> None:
    term = NodeSelectorTerm(
        match_expressions=node_term("gen", "In", "7").match_expressions,
        match_fields=name_term("other").match_fields,
    )
    assert not compile_node_term(term).matches(NODE)


def test_no_terms_and_empty_terms_match_nothing() -> None:
    assert not compile_node_selector(compiled()).matches(NODE)
    assert not compile_node_selector(compiled(NodeSelectorTerm())).matches(NODE)


def test_fields_match_the_name() -> None:
    assert compile_node_term(name_term("n1")).matches(NODE)
    assert not compile_node_term(name_term("n2")).matches(NODE)


@pytest.mark.parametrize(
    ("key", "operator", "value", "matches"),
    [
        ("metadata.name", "NotIn", "n1", False),
        ("metadata.name", "NotIn", "n2", True),
        ("metadata.uid", "In", "x", False),
        ("metadata.uid", "In", "", True),
        ("metadata.uid", "NotIn", "x", True),
    ],
)
def test_a_field_that_nodes_lack_reads_as_empty(
    key: str, operator: NodeOperator, value: str, matches: bool
) -> None:
    wanted = NodeSelectorRequirement(key=key, operator=operator, values=[value])
    assert compile_node_term(NodeSelectorTerm(match_fields=[wanted])).matches(NODE) is matches


def test_a_node_without_a_name_has_no_fields_to_miss() -> None:
    assert compile_node_term(name_term("n1")).matches(Node())


@pytest.mark.parametrize(
    "term",
    [
        node_term("gen", "Gt", "seven"),
        node_term("gen", "In"),
        node_term("not a key", "Exists"),
        name_term("n1", "n2"),
        NodeSelectorTerm(
            match_fields=[NodeSelectorRequirement(key="metadata.name", operator="Exists")]
        ),
    ],
)
def test_a_term_that_cannot_be_read_matches_nothing_but_spoils_no_other(
    term: NodeSelectorTerm,
) -> None:
    assert not compile_node_term(term).matches(NODE)
    both = compile_node_selector(compiled(term, name_term("n1")))
    assert both.matches(NODE)
    assert len(both.errors) == 1


def test_equal_selectors_are_one_key_whatever_their_order() -> None:
    one = compile_node_selector(compiled(name_term("n1"), node_term("gen", "In", "6", "7")))
    two = compile_node_selector(compiled(node_term("gen", "In", "7", "6"), name_term("n1")))
    assert one == two
    assert {one: 1}[two] == 1
    assert one != compile_node_selector(compiled(name_term("n1")))
    assert compile_node_term(name_term("n1")) != compile_node_term(name_term("n2"))
