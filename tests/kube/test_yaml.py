"""YAML means what Kubernetes' tools take it for, and hostile documents stay cheap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.yaml_values import Scalar, key_text, plain_scalar
from bayplan.kube.manifests import load

POD = "kind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c}]\n"


def problem(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    loaded = load(data)
    assert loaded.objects == []
    assert len(loaded.problems) == 1
    assert len(str(loaded.problems[0])) < 400
    return str(loaded.problems[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("No", False), ("ON", True),
        ("y", "y"), ("5", 5), ("-5", -5), ("+5", 5), ("0", 0), ("0x1F", 31), ("0b11", 3),
        ("010", 8), ("0o10", 8), ("1_000", 1000), ("1.5", 1.5), (".5", 0.5), ("5.", 5.0),
        ("1e3", 1000.0), ("1E-2", 0.01), ("09", 9.0), ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), ("100m", "100m"), ("1Gi", "1Gi"),
        ("-", "-"), ("+", "+"), (".", "."), ("1.2.3", "1.2.3"), ("web", "web"), ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000), ("nUll", "nUll"),
    ],
)  # fmt: skip
def test_a_plain_scalar_is_what_kubernetes_takes_it_for(text: str, value: Scalar) -> None:
    assert plain_scalar(text) == value
    assert type(plain_scalar(text)) is type(value)


@given(st.text(max_size=30))
def test_any_scalar_has_a_value_that_json_can_hold(text: str) -> None:
    value = plain_scalar(text)
    assert value is None or isinstance(value, str | int) or math.isfinite(value)
    assert value is None or isinstance(key_text(value), str)


def test_quoted_scalars_are_text() -> None:
    loaded = load((POD + "  nodeName: '5'\n").encode())
    assert loaded.objects[0].spec.node_name == "5"  # type: ignore[attr-defined]


def test_a_number_where_text_belongs_is_an_error() -> None:
    assert "spec.nodeName: expected str, got int (value 5)" in problem(POD + "  nodeName: 5\n")


def test_aliases_and_merges_are_resolved() -> None:
    text = """\
kind: Pod
metadata: {name: p}
spec:
  containers:
  - &base {name: a, image: x, resources: {requests: {cpu: 1}}}
  - {<<: *base, name: b}
  - {<<: [{name: c}, *base]}
  - *base
"""
    containers = load(text.encode()).objects[0].spec.containers  # type: ignore[attr-defined]
    assert [(c.name, c.image) for c in containers] == [
        ("a", "x"), ("b", "x"), ("c", "x"), ("a", "x"),
    ]  # fmt: skip


def test_keys_that_are_not_text_become_text() -> None:
    text = "kind: Namespace\nmetadata: {name: n, labels: {1: a, true: b, 1.5: c}}\n"
    assert load(text.encode()).objects[0].metadata.labels == {"1": "a", "true": "b", "1.5": "c"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POD + "kind: Node\n", "line 5: duplicate key 'kind'"),
        ("a: &x [*x]", "alias 'x' has no finished anchor"),
        ("a: *x", "alias 'x' has no finished anchor"),
        ("a: &x {b: *x}", "alias 'x' has no finished anchor"),
        ("? [a]\n: b", "a key must be a scalar"),
        ("~: b", "a key must be text"),
        ("&a [a]: b", "a key must be a scalar"),
        ("<<: 5", "only mappings can be merged"),
        ("a: !!python/object/apply:os.system [ls]", "is not plain data"),
        ("a: !!int x", "does not match its tag"),
        ("a: !!binary aGk=", "does not match its tag"),
        ("!!set {a, b}", "is not plain data"),
        ("just text", "not an object"),
        ("5", "not an object"),
        ("kind: List\nitems: 5", "items is not a list"),
        ("kind: [", "not YAML"),
        ("kind: 'Pod", "not YAML"),
        ("\ta: b", "not YAML"),
        ("a: b\n: c: d", "not YAML"),
        ("kind: Pod\x00", "not YAML"),
        ("[" * 200 + "a" + "]" * 200, "nested deeper than"),
        ("[" * 200 + "]" * 200, "not an object"),
        ("- " * 200 + "a", "nested deeper than"),
        ("[" * 100_000, "nested deeper than"),
        (b"kind: \xff\xfe", "not UTF-8 at byte 6"),
        (POD.encode("utf-16"), "not UTF-8"),
    ],
)
def test_what_is_not_plain_data_is_a_clear_error(text: str | bytes, said: str) -> None:
    assert said in problem(text)


def test_a_bomb_of_aliases_is_defused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
    assert "aliases repeat more than" in problem("\n".join(lines))


def test_a_repeated_large_mapping_is_merged_within_bounds() -> None:
    many = ", ".join(f"k{n}: v" for n in range(1000))
    merges = "\n".join(f"m{n}: {{<<: *base}}" for n in range(1001))
    assert "aliases repeat more than" in problem(f"base: &base {{{many}}}\n{merges}")


def test_items_that_are_no_objects_are_reported() -> None:
    loaded = load(b"[5, {kind: Namespace, metadata: {name: n}}, x]")
    assert [obj.name for obj in loaded.objects] == ["n"]
    assert "2 of its items are not objects" in str(loaded.problems[0])


def test_documents_in_flow_style_are_yaml_and_not_broken_json() -> None:
    loaded = load(b"{kind: Node, metadata: {name: a}}\n---\n{kind: Node, metadata: {name: b}}\n")
    assert [obj.name for obj in loaded.objects] == ["a", "b"]
    assert loaded.problems == []
