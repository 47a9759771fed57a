"""Taints that follow a node's conditions and its cordon, as Kubernetes' node controller sets them.

`not-ready` while Ready is False, `unreachable` while it is Unknown, each both to keep new pods away
(NoSchedule) and to evict those that do not tolerate it for long (NoExecute); `unschedulable` while
the node is cordoned.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Plan, Stage, Update
from bayplan.embedded.control.storages import NODES
from bayplan.embedded.nodes.objects import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    condition_status,
)

_BY_READY = {"False": NOT_READY, "Unknown": UNREACHABLE}
_OURS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)


class Taints(Controller[str]):
    """Keyed by node."""

    name = "node-taints"
    storages = (NODES,)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def notice(self, change: Change) -> Iterable[str]:
        """Every change of a node."""
        return () if change.deleted else (change.entry.key.name,)

    def decide(self, key: str) -> Plan:
        """Set the taints that the node should have and has not, and the other way round."""
        node = self._stage.view.get(NODES, "", key)
        if node is None or _pairs(node) == wanted_taints(node):
            return []
        now = self._stage.now()
        return [Update(Key(NODES, "", key), lambda obj: retainted(obj, now))]


def wanted_taints(node: JsonObject) -> set[tuple[str, str]]:
    """The taints, of those that are ours to set, that a node's state asks for."""
    wanted: set[tuple[str, str]] = set()
    unwell = _BY_READY.get(condition_status(node, "Ready"))
    if unwell:
        wanted |= {(unwell, "NoSchedule"), (unwell, "NoExecute")}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def retainted(node: JsonObject, now: str) -> JsonObject:
    """The node with the taints that its state asks for; others stay."""
    spec, wanted = node.setdefault("spec", {}), wanted_taints(node)
    kept = [
        one
        for one in spec.get("taints") or ()
        if one["key"] not in _OURS or (one["key"], one["effect"]) in wanted
    ]
    has = {(one["key"], one["effect"]) for one in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": now} for key, effect in sorted(wanted - has)
    ]
    spec["taints"] = kept + added
    if not spec["taints"]:
        del spec["taints"]
    return node


def _pairs(node: JsonObject) -> set[tuple[str, str]]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return {(one["key"], one["effect"]) for one in taints if one["key"] in _OURS}
