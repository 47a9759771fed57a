"""What each kind of step risks."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.fit.fixes import FixKind, Risk

_RELAXES = (Risk.RELAXES_A_RULE,)
RISKS: Mapping[FixKind, tuple[Risk, ...]] = {
    FixKind.UNCORDON: (Risk.OPENS_A_NODE,),
    FixKind.CLEAR_TAINT: (Risk.NEEDS_HANDS,),
    FixKind.TOLERATION: _RELAXES,
    FixKind.LABEL_NODE: (Risk.OPENS_A_NODE,),
    FixKind.CHANGE_SELECTOR: _RELAXES,
    FixKind.SMALLER_REQUEST: (Risk.RUNS_WITH_LESS,),
    FixKind.DROP_HOST_PORT: _RELAXES,
    FixKind.MOVE_POD: (Risk.EVICTS,),
    FixKind.STOP_POD: (Risk.EVICTS,),
    FixKind.ADD_NODE: (Risk.COSTS, Risk.NEEDS_HANDS),
    FixKind.ADD_BIGGER_NODE: (Risk.COSTS, Risk.NEEDS_HANDS),
    FixKind.INSTALL_DRIVER: (Risk.NEEDS_HANDS,),
    FixKind.RAISE_LIMIT: (Risk.OVERLOADS,),
    FixKind.BIND_CLAIM: (Risk.NEEDS_HANDS,),
    FixKind.ADD_VOLUME: (Risk.COSTS, Risk.NEEDS_HANDS),
    FixKind.CREATE_VOLUME: (Risk.NEEDS_HANDS,),
    FixKind.HONOR_TAINTS: (Risk.UNBALANCES,),
    FixKind.HONOR_AFFINITY: (Risk.UNBALANCES,),
    FixKind.RELAX_SPREAD: (Risk.RELAXES_A_RULE, Risk.UNBALANCES),
    FixKind.DROP_AFFINITY: _RELAXES,
}
ROLLED_OUT = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
"""Kinds that replace their running pods when their template changes."""
