"""Which taints a pod tolerates.

`Lt` and `Gt` compare integers only where Kubernetes' gate TaintTolerationComparisonOperators is on.
It is off by default (alpha since 1.35), and then a toleration that uses them tolerates nothing; so
it is here unless the caller says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from bayplan.kube.nodes import Taint, TaintEffect
from bayplan.kube.pods import Toleration
from bayplan.kube.selectors import parse_int64

SCHEDULING_EFFECTS: frozenset[TaintEffect] = frozenset({"NoSchedule", "NoExecute"})
"""The effects that keep a new pod off a node."""

_STATES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""What the keys of taints begin with that tell the state of a node."""
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Whether the toleration tolerates the taint; an empty key or effect stands for any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt":
            return comparison_operators and _compares(toleration, taint)


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    effects: Container[str] = SCHEDULING_EFFECTS,
    *,
    comparison_operators: bool = False,
) -> Taint | None:
    """The first taint with one of the effects that no toleration tolerates, if there is one."""
    held = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparison_operators=comparison_operators)
            for toleration in held
        ):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound, have = _plain_integer(toleration.value), _plain_integer(taint.value)
    if bound is None or have is None:
        return False
    return have < bound if toleration.operator == "Lt" else have > bound


def _plain_integer(text: str) -> int | None:
    """An integer without sign games or leading zeros, which could be taken for octal."""
    return parse_int64(text) if _PLAIN_INTEGER.fullmatch(text) else None


def tells_state(taint: Taint) -> bool:
    """Whether a taint tells the state of a node, which a new one would not be in."""
    return taint.key.startswith(_STATES)
