"""Kinds that show objects which are kept in another form.

`events.k8s.io` and the core group show the same events under other names; the versions of a custom
resource differ in nothing but their version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import Kind

Convert = Callable[[JsonObject], JsonObject]


class View(NamedTuple):
    """How to turn the kept form into the shown one, and back."""

    shown: Convert
    kept: Convert


_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def _renamed(obj: JsonObject, names: dict[str, str], api_version: str) -> JsonObject:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    return {**renamed, "apiVersion": api_version}


_TO_KEPT = {shown: kept for kept, shown in _EVENT_NAMES.items()}
_REPORTED = ("reportingComponent", "reportingInstance")
"""What the core group always says of an event, and `events.k8s.io` only if there is something."""


def _shown_event(obj: JsonObject) -> JsonObject:
    said = {name: value for name, value in obj.items() if name not in _REPORTED or value}
    return _renamed(said, _EVENT_NAMES, "events.k8s.io/v1")


def _kept_event(obj: JsonObject) -> JsonObject:
    return {**dict.fromkeys(_REPORTED, ""), **_renamed(obj, _TO_KEPT, "v1")}


_EVENTS = View(_shown_event, _kept_event)


def viewed(kind: Kind) -> View | None:
    """The view that a kind is; None where the kept form is the shown one."""
    if kind.group == "events.k8s.io":
        return _EVENTS
    if kind.custom is not None and kind.custom.storage_version != kind.version:
        return _version_view(kind)
    return None


def _version_view(kind: Kind) -> View:
    kept = f"{kind.group}/{kind.custom.storage_version if kind.custom else kind.version}"
    return View(
        lambda obj: {**obj, "apiVersion": kind.api_version},
        lambda obj: {**obj, "apiVersion": kept},
    )


def to_shown(kind: Kind, obj: JsonObject) -> JsonObject:
    """A kept object as a kind shows it."""
    view = viewed(kind)
    return obj if view is None else view.shown(obj)


def to_kept(kind: Kind, obj: JsonObject) -> JsonObject:
    """An object of a kind as it is kept."""
    view = viewed(kind)
    return obj if view is None else view.kept(obj)


def kept_field(kind: Kind, path: str) -> str:
    """The kept name of a field that a kind shows under another one."""
    if kind.group != "events.k8s.io":
        return path
    first, dot, rest = path.partition(".")
    return _TO_KEPT.get(first, first) + dot + rest
