"""Tolerations tolerate the taints that kube-scheduler says they do."""

from __future__ import annotations

from typing import Literal

import pytest

from bayplan.kube.nodes import Taint, TaintEffect
from bayplan.kube.pods import Toleration
from bayplan.kube.tolerations import find_untolerated, tolerates

Operator = Literal["Exists", "Equal", "Lt", "Gt", ""]
TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("key", "operator", "value", "effect", "expected"),
    [
        ("k", "Equal", "v", "NoSchedule", True),
        ("k", "", "v", "NoSchedule", True),
        ("k", "Equal", "v", "", True),
        ("k", "Equal", "w", "", False),
        ("k", "Exists", "", "", True),
        ("k", "Exists", "", "NoExecute", False),
        ("j", "Exists", "", "", False),
        ("", "Exists", "", "", True),
        ("", "Exists", "", "NoSchedule", True),
        ("", "Exists", "", "PreferNoSchedule", False),
    ],
)
def test_key_value_and_effect_must_agree_and_empty_stands_for_any(
    key: str, operator: Operator, value: str, effect: TaintEffect | Literal[""], expected: bool
) -> None:
    toleration = Toleration(key=key, operator=operator, value=value, effect=effect)
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize(
    ("operator", "bound", "have", "expected"),
    [
        ("Lt", "10", "9", True),
        ("Lt", "10", "10", False),
        ("Gt", "10", "11", True),
        ("Gt", "10", "10", False),
        ("Gt", "-5", "-4", True),
        ("Lt", "010", "9", False),
        ("Lt", "10", "09", False),
        ("Lt", "+10", "9", False),
        ("Lt", "ten", "9", False),
        ("Gt", "1", "99999999999999999999", False),
    ],
)
def test_comparisons_are_numeric_where_their_gate_is_on(
    operator: Operator, bound: str, have: str, expected: bool
) -> None:
    toleration = Toleration(key="k", operator=operator, value=bound)
    taint = Taint(key="k", value=have, effect="NoSchedule")
    assert tolerates(toleration, taint, comparison_operators=True) is expected
    assert not tolerates(toleration, taint)


def test_the_first_untolerated_taint_of_the_effects_is_found() -> None:
    taints = [
        Taint(key="soft", effect="PreferNoSchedule"),
        TAINT,
        Taint(key="hard", effect="NoExecute"),
    ]
    assert find_untolerated(taints, []) == TAINT
    assert find_untolerated(taints, [Toleration(key="k", operator="Exists")]) == taints[2]
    assert find_untolerated(taints, [], {"PreferNoSchedule"}) == taints[0]
    assert find_untolerated(taints, [Toleration(operator="Exists")]) is None
    assert find_untolerated([], []) is None
