"""Validation of events of the core group and of `events.k8s.io`.

Events are stored in the form of the core group, and errors use its field names; only the reporter
has the name by which it was written. `events.k8s.io` has stricter rules.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import bad_value, immutable, required
from bayplan.embedded.apiserver.validation.names import name_problems, qualified_name

_SHORT, _LONG = 128, 1024
_UNSET = "needs to be unset"
_KEPT: dict[str, str | int | None] = {
    "involvedObject": "core.ObjectReference",
    "reason": "",
    "message": "",
    "source": "core.EventSource",
    "firstTimestamp": None,
    "lastTimestamp": None,
    "count": 0,
    "type": "",
    "eventTime": None,
    "action": "",
    "related": "core.ObjectReference",
    "reportingComponent": "",
    "reportingInstance": "",
}
"""Immutable fields in `events.k8s.io`: by name, the type of an object, or the absent value."""


def core_event_problems(event: JsonObject) -> list[FieldCause]:
    """Return the problems of an event of the core group."""
    return _event_problems(event, "reportingComponent")


def new_event_problems(event: JsonObject) -> list[FieldCause]:
    """Return the problems of an event of `events.k8s.io`, new or old."""
    return _event_problems(event, "reportingController")


def _event_problems(event: JsonObject, reporter: str) -> list[FieldCause]:
    home = event["metadata"].get("namespace") or ""
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    if event.get("eventTime") is None:
        fine = home == about if about else home in ("", "default")
        return [] if fine else [_elsewhere(about)]
    found = [] if about or home in ("default", "kube-system") else [_elsewhere(about)]
    return found + _report_problems(event, reporter)


def _elsewhere(namespace: str) -> FieldCause:
    return bad_value("involvedObject.namespace", namespace, "does not match event.namespace")


def _report_problems(event: JsonObject, reporter: str) -> list[FieldCause]:
    """Require reporter and action for events with `eventTime`."""
    name, found = event.get("reportingComponent") or "", list[FieldCause]()
    if not name:
        found.append(required(reporter))
    found += name_problems(qualified_name, name, reporter)
    for field in ("reportingInstance", "action", "reason"):
        if not event.get(field):
            found.append(required(field))
        found += _too_long(event, field, _SHORT)
    return found + _too_long(event, "message", _LONG)


def _too_long(event: JsonObject, field: str, most: int) -> list[FieldCause]:
    if len((event.get(field) or "").encode()) <= most:
        return []
    return [bad_value(field, "", f"can have at most {most} characters")]


def creation_problems(event: JsonObject) -> list[FieldCause]:
    """Return the problems that only a new event of `events.k8s.io` can have."""
    found = _series_problems(event)
    if event.get("eventTime") is None:
        found.append(required("eventTime"))
    type_ = event.get("type") or ""
    if type_ not in ("Normal", "Warning"):
        found.append(bad_value("type", "", f"has invalid value: {type_}"))
    found += [
        bad_value(field, "", _UNSET)
        for field in ("firstTimestamp", "lastTimestamp", "count")
        if event.get(field)
    ]
    return [*found, bad_value("source", "", _UNSET)] if event.get("source") else found


def _series_problems(event: JsonObject) -> list[FieldCause]:
    series, found = event.get("series"), list[FieldCause]()
    if series is None:
        return found
    if (series.get("count") or 0) < 2:
        found.append(bad_value("series.count", "", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        found.append(required("series.lastObservedTime"))
    return found


def change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Allow only changes of the series of an event of `events.k8s.io`."""
    found = _series_problems(new) if new.get("series") != old.get("series") else []
    for name, form in _KEPT.items():
        if (new.get(name) or None) != (old.get(name) or None):
            field = "reportingController" if name == "reportingComponent" else name
            found.append(immutable(field, _shown(new.get(name), form)))
    return found


def _shown(value: JsonValue, form: str | int | None) -> JsonValue:
    if isinstance(value, dict) and isinstance(form, str):
        return internal_form(value, form)
    is_object = isinstance(form, str) and "." in form
    return value if value is not None or is_object else form
