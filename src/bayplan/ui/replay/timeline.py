"""The timeline of a recording: events and counts over time, read in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.recordings import RecordedChange, Recording
from bayplan.ui import texts
from bayplan.ui.picture.events import event_row

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

POINTS = 500
MARKS = 500
_PRIORITY = {"scale-up": 0, "scale-down": 1, "warning": 3, "queue": 3, "node": 2}
"""The priority of marks by kind, if there are too many."""
_UP = frozenset({"ScaledUpGroup", "FailedToScaleUpGroup", "ScaleUpTimedOut"})
_DOWN = frozenset({"ScaleDown", "ScaleDownEmpty"})


class TimelineMark(NamedTuple):
    """An event on the timeline."""

    at: float
    kind: str
    text: str


class ReplayTimeline:
    """Reads the timeline of a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._every = max(recording.seconds / POINTS, 0.001)
        self._due = 0.0
        self._running: set[str] = set()
        self._waiting: set[str] = set()
        self._nodes: set[str] = set()
        self._seen_events: set[str] = set()
        self._marks: list[TimelineMark] = []
        self._series: dict[str, list[JsonValue]] = {"running": [], "waiting": [], "nodes": []}

    def read(self) -> dict[str, JsonValue]:
        """Return the timeline in the format of the page."""
        for change in self._recording.after(0):
            while change.at > self._due and self._due <= self._recording.seconds:
                self._sample()
            self._count(change)
        while self._due <= self._recording.seconds:
            self._sample()
        marks = sorted(_kept(self._marks))
        return {
            "seconds": self._recording.seconds,
            "marks": [{"at": one.at, "kind": one.kind, "text": one.text} for one in marks],
            "series": {**self._series},
        }

    def _sample(self) -> None:
        at = round(self._due, 3)
        for name, there in (
            ("running", self._running),
            ("waiting", self._waiting),
            ("nodes", self._nodes),
        ):
            self._series[name].append([at, len(there)])
        self._due += self._every

    def _count(self, change: RecordedChange) -> None:
        obj, key = change.object, change.identity.key
        if change.identity.kind == "Pod":
            placed = isinstance(obj, Pod) and bool(obj.spec.node_name)
            runs = placed and isinstance(obj, Pod) and obj.status.phase == "Running"
            _hold(self._running, key, there=runs)
            _hold(self._waiting, key, there=obj is not None and not placed)
        elif change.identity.kind == "Node":
            before = key in self._nodes
            _hold(self._nodes, key, there=isinstance(obj, Node))
            if before != (key in self._nodes):
                word = "was removed" if before else "was added"
                self._mark(change.at, "node", f"node {key} {word}")
        elif isinstance(obj, Event) and key not in self._seen_events:
            self._seen_events.add(key)
            for kind in _kinds(obj):
                self._mark(change.at, kind, f"{event_row(obj)[4]}: {obj.note or obj.reason}")

    def _mark(self, at: float, kind: str, text: str) -> None:
        if at <= 0:
            return  # it existed from the start
        self._marks.append(TimelineMark(round(at, 3), kind, texts.bounded(texts.line(text), 300)))
        if len(self._marks) > MARKS * 4:
            self._marks = _kept(self._marks)


def _kinds(event: Event) -> Iterator[str]:
    if event.reason in _UP:
        yield "scale-up"
    elif event.reason in _DOWN:
        yield "scale-down"
    elif event.regarding.kind in {"Queue", "PodGroup"}:
        yield "queue"
    elif event.type == "Warning":
        yield "warning"


def _kept(marks: list[TimelineMark]) -> list[TimelineMark]:
    """Return the marks that are shown: by priority, then by time."""
    return sorted(marks, key=lambda one: (_PRIORITY[one.kind], one.at))[:MARKS]


def _hold(keys: set[str], key: str, *, there: bool) -> None:
    (keys.add if there else keys.discard)(key)
