"""Objects outside the model that the page shows, or that queues and plans need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.ui.picture.picture import Picture
from bayplan.ui.picture.status import NAME, NAMESPACE, AutoscalerStatus

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

KEPT_KINDS = frozenset({PodGroup, Queue, DaemonSet, Job})
"""Kinds that queues and plans need."""
SCALING_REASONS = frozenset(
    {"ScaledUpGroup", "FailedToScaleUpGroup", "ScaleUpTimedOut", "ScaleDown", "ScaleDownEmpty"}
)
"""Reasons of the scaling events of an autoscaler."""
MAX_STEPS = 20


class Extras:
    """Events, the status of an autoscaler, and the objects for queues and plans."""

    def __init__(self, picture: Picture, on_change: Callable[[], None] = lambda: None) -> None:
        self._picture = picture
        self._on_change = on_change
        self.kept: dict[tuple[type[KubeObject], str], KubeObject] = {}

    def take(self, obj: KubeObject) -> None:
        """Handle an added or changed object."""
        if isinstance(obj, Event):
            self._picture.put_event(obj)
            return
        if isinstance(obj, PodGroup):
            self._picture.put_pod_group(obj, obj.key)
        if type(obj) in KEPT_KINDS:
            self.kept[type(obj), obj.key] = obj
            self._on_change()

    def drop(self, kind: type[KubeObject], key: str) -> None:
        """Handle a deleted object."""
        if kind is Event:
            self._picture.events.drop(key)
        elif self.kept.pop((kind, key), None) is not None:
            if kind is PodGroup:
                self._picture.put_pod_group(None, key)
            self._on_change()

    def take_untyped(self, obj: Mapping[str, object], *, gone: bool) -> None:
        """Handle an untyped object: the status of an autoscaler is shown, others are ignored."""
        meta = obj.get("metadata")
        names = meta if isinstance(meta, dict) else {}
        if obj.get("kind") == "ConfigMap" and (names.get("namespace"), names.get("name")) == (
            NAMESPACE,
            NAME,
        ):
            self._take_status({} if gone else obj)

    def _take_status(self, config_map: Mapping[str, object]) -> None:
        picture, status = self._picture, AutoscalerStatus.of(config_map)
        if picture.groups.update("status", status.facts()):
            picture.all_nodes()
        if config_map:
            picture.tables.set("plans", status.row(self._steps()))
        else:
            picture.tables.drop("plans", "last")

    def _steps(self) -> list[JsonValue]:
        """Return the last scaling events of an autoscaler, the latest first."""
        events = [
            row for row in self._picture.tables["events"].values() if row[3] in SCALING_REASONS
        ]
        latest = sorted(events, key=lambda row: (str(row[1]), str(row[0])), reverse=True)
        return [
            {"what": row[5], "group": "", "nodes": None, "pods": [], "why": row[3], "cost": None}
            for row in latest[:MAX_STEPS]
        ]
