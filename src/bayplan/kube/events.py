"""Events: reports of controllers about objects."""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import KubeObject, ObjectReference, Struct

EventType = Literal["Normal", "Warning"]


class EventSeries(Struct):
    """How often an event was repeated, and when last."""

    count: int
    last_observed_time: str


class EventSource(Struct):
    """The reporter, as the older events API writes it."""

    component: str = ""
    host: str = ""


class Event(KubeObject):
    """A report about one object, of the group events.k8s.io."""

    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = msgspec.field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource | None = None
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0
