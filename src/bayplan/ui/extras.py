"""Objects that the model does not count, and the page shows or hands on all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.ui.picture.picture import Picture
from bayplan.ui.picture.status import NAME, NAMESPACE, Status

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

HANDED_ON = frozenset({PodGroup, Queue, DaemonSet, Job})
"""Kinds that queues and plans rest on."""
SAID = frozenset(
    {"ScaledUpGroup", "FailedToScaleUpGroup", "ScaleUpTimedOut", "ScaleDown", "ScaleDownEmpty"}
)
"""Reasons of events by which an autoscaler says what it did."""
MOST_STEPS = 20


class Extras:
    """Events, an autoscaler's status, and what queues and plans rest on."""

    def __init__(self, picture: Picture, stir: Callable[[], None] = lambda: None) -> None:
        self._picture = picture
        self._stir = stir
        self.kept: dict[tuple[type[KubeObject], str], KubeObject] = {}

    def take(self, obj: KubeObject) -> None:
        """Such an object is there, or has changed."""
        if isinstance(obj, Event):
            self._picture.put_event(obj)
            return
        if isinstance(obj, PodGroup):
            self._picture.put_pod_group(obj, obj.key)
        if type(obj) in HANDED_ON:
            self.kept[type(obj), obj.key] = obj
            self._stir()

    def drop(self, kind: type[KubeObject], key: str) -> None:
        """Such an object is gone."""
        if kind is Event:
            self._picture.events.drop(key)
        elif self.kept.pop((kind, key), None) is not None:
            if kind is PodGroup:
                self._picture.put_pod_group(None, key)
            self._stir()

    def take_untyped(self, obj: Mapping[str, object], *, gone: bool) -> None:
        """An object that nobody has a type for: if it is an autoscaler's status, it is shown."""
        meta = obj.get("metadata")
        said = meta if isinstance(meta, dict) else {}
        if obj.get("kind") == "ConfigMap" and (said.get("namespace"), said.get("name")) == (
            NAMESPACE,
            NAME,
        ):
            self._take_status({} if gone else obj)

    def _take_status(self, config_map: Mapping[str, object]) -> None:
        picture, status = self._picture, Status.of(config_map)
        if picture.groups.say("status", status.facts()):
            picture.all_nodes()
        if config_map:
            picture.tables.set("plans", status.row(self._steps()))
        else:
            picture.tables.drop("plans", "last")

    def _steps(self) -> list[JsonValue]:
        """What an autoscaler has said that it did, the latest first."""
        said = [row for row in self._picture.tables["events"].values() if row[3] in SAID]
        latest = sorted(said, key=lambda row: (str(row[1]), str(row[0])), reverse=True)
        return [
            {"what": row[5], "group": "", "nodes": None, "pods": [], "why": row[3], "cost": None}
            for row in latest[:MOST_STEPS]
        ]
