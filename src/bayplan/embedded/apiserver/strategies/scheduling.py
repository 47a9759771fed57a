"""Classes of priority and of runtimes, leases, and events."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import Strategy, fill, round_amounts
from bayplan.embedded.apiserver.validation import events, scheduling
from bayplan.embedded.apiserver.validation.names import path_segment

_NOT_YET = ("strategy", "preferredHolder")
"""What a lease says to an election that this server does not hold."""


def _default_priority(obj: JsonObject) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority", value=0)


def _new_priority(obj: JsonObject) -> None:
    """The generation of a class never moves, since what it says does not."""
    obj["metadata"]["generation"] = 1


def _default_runtime(obj: JsonObject) -> None:
    round_amounts((obj.get("overhead") or {}).get("podFixed"))


def _new_lease(lease: JsonObject) -> None:
    for name in _NOT_YET:
        lease["spec"].pop(name, None)


def _changed_lease(new: JsonObject, _: JsonObject) -> None:
    _new_lease(new)


SCHEDULING = {
    "priorityclasses.scheduling.k8s.io": Strategy(
        default=_default_priority,
        prepare_create=_new_priority,
        validate_new=scheduling.priority_class_problems,
        validate_update=scheduling.priority_class_change_problems,
    ),
    "runtimeclasses.node.k8s.io": Strategy(
        default=_default_runtime,
        validate=scheduling.runtime_class_problems,
        validate_update=scheduling.runtime_class_change_problems,
        warnings=scheduling.runtime_class_warnings,
        create_on_update=True,
    ),
    "leases.coordination.k8s.io": Strategy(
        prepare_create=_new_lease,
        prepare_update=_changed_lease,
        validate=scheduling.lease_problems,
        create_on_update=True,
    ),
    "events": Strategy(
        name_rule=path_segment,
        validate=events.core_event_problems,
        metadata_last=True,
        create_on_update=True,
    ),
    "events.events.k8s.io": Strategy(
        validate=events.new_event_problems,
        validate_new=events.creation_problems,
        validate_update=events.change_problems,
        create_on_update=True,
    ),
}
