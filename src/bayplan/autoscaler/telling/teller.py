"""Telling people what happens: events about pods, nodes and the status ConfigMap.

The same thing is told of the same object again only after a while, so that a pod that waits for
hours has a handful of events, and the API server has peace.
"""

from __future__ import annotations

from collections import OrderedDict

from bayplan.autoscaler.options import LoopOptions
from bayplan.autoscaler.telling.messages import Notice
from bayplan.base.clock import Clock
from bayplan.client import Untyped
from bayplan.client.events import Notes
from bayplan.kube.meta import KubeObject, ObjectReference

AGAIN = 300.0
"""Seconds after which the same thing is told again."""
MOST_KEPT = 50_000


class Teller:
    """Writes events, each thing once in a while."""

    def __init__(self, notes: Notes, options: LoopOptions, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._told: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._status: Untyped = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": options.namespace, "name": options.status_config_map_name},
        }

    def about(self, obj: KubeObject, notice: Notice) -> None:
        """Tell something about an object."""
        if self._is_news(obj.metadata.uid or obj.key, notice):
            self._note(obj, notice)

    def about_all(self, notice: Notice) -> None:
        """Tell something about the cluster or a group, by the status ConfigMap."""
        if self._is_news(notice.text, notice):
            self._note(self._status, notice)

    def about_reference(self, about: ObjectReference | None, notice: Notice) -> None:
        """Tell something about an object of which only the place is known."""
        if about is None:
            self.about_all(notice)
        elif self._is_news(f"{about.kind} {about.namespace}/{about.name}: {notice.text}", notice):
            meta = {"namespace": about.namespace, "name": about.name, "uid": about.uid}
            obj: Untyped = {"apiVersion": about.api_version, "kind": about.kind, "metadata": meta}
            self._note(obj, notice)

    def _note(self, about: KubeObject | Untyped, notice: Notice) -> None:
        self._notes.note(about, notice.type, notice.reason, action=notice.action, text=notice.text)

    def _is_news(self, about: str, notice: Notice) -> bool:
        now, key = self._clock.monotonic(), (about, notice.reason)
        text, when = self._told.get(key, ("", 0.0))
        if text == notice.text and now - when < AGAIN:
            return False
        self._told[key] = (notice.text, now)
        self._told.move_to_end(key)
        if len(self._told) > MOST_KEPT:
            self._told.popitem(last=False)
        return True
