"""Taints and tolerations.

`Lt` and `Gt` compare integers only where Kubernetes' gate TaintTolerationComparisonOperators is on.
It is off by default (alpha since 1.35), and then a toleration that uses them tolerates nothing. The
same is the default here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from bayplan.kube.nodes import Taint, TaintEffect
from bayplan.kube.pods import Toleration
from bayplan.kube.selectors import parse_int64

SCHEDULING_EFFECTS: frozenset[TaintEffect] = frozenset({"NoSchedule", "NoExecute"})
"""The effects that keep a new pod off a node."""

_STATUS_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Key prefixes of taints that report the status of a node."""
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Return whether the toleration tolerates the taint; an empty key or effect matches any."""
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
    """Return the first taint with one of the effects that no toleration tolerates, if any."""
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
    """Return an integer without a plus sign or leading zeros; None for other texts."""
    return parse_int64(text) if _PLAIN_INTEGER.fullmatch(text) else None


def is_status_taint(taint: Taint) -> bool:
    """Return whether a taint reports a node's status, which a new node would not have."""
    return taint.key.startswith(_STATUS_PREFIXES)
