"""Nodes: their ranges of addresses under both names, and nothing of what was taken away."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import Now, Strategy, child, round_amounts
from bayplan.embedded.apiserver.validation import nodes


def _default(node: JsonObject) -> None:
    _settle_ranges(child(node, "spec"))
    _default_status(child(node, "status"))


def _default_status(status: JsonObject) -> None:
    """What a node has is what it gives, unless it says otherwise."""
    if not status.get("allocatable") and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    for field in ("capacity", "allocatable"):
        round_amounts(status.get(field))


def _settle_ranges(spec: JsonObject) -> None:
    """The older of the two names for a node's ranges wins, as old clients know no other."""
    one, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not ranges or ranges[0] != one):
        spec["podCIDRs"] = [one]
    elif ranges and not one:
        spec["podCIDR"] = ranges[0]


def _new(node: JsonObject) -> None:
    node["spec"].pop("configSource", None)
    node["status"].pop("config", None)


def _changed(new: JsonObject, _: JsonObject) -> None:
    new["spec"].pop("configSource", None)


def _status(new: JsonObject, _: JsonObject, __: Now) -> None:
    _default_status(new["status"])
    new["status"].pop("config", None)


NODES = Strategy(
    default=_default,
    prepare_create=_new,
    prepare_update=_changed,
    prepare_status=_status,
    validate=nodes.node_problems,
    validate_update=nodes.node_change_problems,
    validate_status=nodes.node_status_problems,
    warnings=nodes.node_warnings,
    keeps_status=True,
)
