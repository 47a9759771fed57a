"""Events of the autoscaler: Cluster Autoscaler's reasons and texts, and the recorder of them.

The same event about the same object is written again only after a while, so that a pod that waits
for hours has a handful of events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.autoscaler.options import LoopOptions
from bayplan.autoscaler.plan import LeftPending, ScaleUp
from bayplan.base.clock import Clock
from bayplan.base.durations import format_duration
from bayplan.client import Untyped
from bayplan.client.events import Notes
from bayplan.kube.events import EventType
from bayplan.kube.meta import KubeObject, ObjectReference

ACTION = "ScaleUp"
MOST_GROUPS = 5
"""How many groups are named for one reason."""


@dataclass(frozen=True, slots=True)
class EventMessage:
    """An event."""

    type: EventType
    reason: str
    text: str
    action: str = ACTION


def triggered(scale_ups: Iterable[ScaleUp]) -> EventMessage:
    """Nodes were bought for a pod."""
    said = " ".join(f"{{{one}}}" for one in scale_ups)
    return EventMessage("Normal", "TriggeredScaleUp", f"pod triggered scale-up: [{said}]")


def not_triggered(left: LeftPending) -> EventMessage:
    """Nothing can be bought for a pod, and why, with the groups that say so."""
    if not left.by_group:
        return EventMessage(
            "Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: no node groups"
        )
    said = ", ".join(_counted(left.by_group, left.details))
    return EventMessage("Normal", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {said}")


def _counted(
    by_group: Mapping[str, tuple[str, ...]], details: Mapping[str, tuple[str, ...]]
) -> list[str]:
    groups: dict[str, list[str]] = {}
    for name, reasons in sorted(by_group.items()):
        for reason in reasons:
            groups.setdefault(reason, []).append(name)
    told = []
    for reason, names in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])):
        shown = ", ".join(names[:MOST_GROUPS])
        more = f" and {len(names) - MOST_GROUPS} more" if len(names) > MOST_GROUPS else ""
        why = next((details[name] for name in names if details.get(name)), ())
        behind = f": {'; '.join(why)}" if why else ""
        told.append(f"{len(names)} {reason} ({shown}{more}{behind})")
    return told


def scaled_up(done: ScaleUp) -> EventMessage:
    """A group was made larger."""
    sizes = f"{done.to_size} instead of {done.from_size} (max: {done.max_size})"
    return EventMessage(
        "Normal", "ScaledUpGroup", f"Scale-up: group {done.group} size set to {sizes}"
    )


def failed(group: str, why: str) -> EventMessage:
    """A group could not be made larger."""
    text = f"Scale-up failed for group {group}: {why}"
    return EventMessage("Warning", "FailedToScaleUpGroup", text)


def timed_out(group: str, patience: float) -> EventMessage:
    """Nodes that were bought did not come."""
    waited = format_duration(patience)
    text = f"Nodes added to group {group} failed to register within {waited}"
    return EventMessage("Warning", "ScaleUpTimedOut", text)


def instances_failed(group: str, count: int, code: str, message: str) -> EventMessage:
    """Instances that were bought cannot be had."""
    text = f"Failed adding {count} nodes to group {group} due to {code}: {message}"
    return EventMessage("Warning", "ScaleUpFailed", text)


def nodes_reached(most: int, now: int) -> EventMessage:
    """The cluster may have no more nodes."""
    text = f"Max total nodes in cluster reached: {most}. Current number of nodes: {now}"
    return EventMessage("Warning", "MaxNodesTotalReached", text)


def unregistered(instance: str, group: str, problem: str = "") -> EventMessage:
    """An instance that never became a node was given back, or could not be."""
    if problem:
        text = f"Failed to remove node {instance} of group {group}: {problem}"
        return EventMessage("Warning", "DeleteUnregisteredFailed", text, "DeleteUnregistered")
    text = f"Removed unregistered node {instance} of group {group}"
    return EventMessage("Normal", "DeleteUnregistered", text, "DeleteUnregistered")


def drivers_missing(node: str, group: str, drivers: Iterable[str], patience: float) -> EventMessage:
    """A node's drivers did not come."""
    names, waited = ", ".join(drivers), format_duration(patience)
    text = (
        f"Node {node} of group {group} has not reported CSI driver {names} within {waited};"
        " it is not ready and will be removed"
    )
    return EventMessage("Warning", "CSIDriverMissing", text, "RemoveNode")


def size_fixed(group: str, target: int, there: int) -> EventMessage:
    """A group was meant to have instances that never came."""
    text = f"Group {group} has {there} instances and should have {target}: it should have {there}"
    return EventMessage("Warning", "FixNodeGroupSize", text, "FixNodeGroupSize")


def misdeclared(group: str, problem: str) -> EventMessage:
    """What a group says of itself cannot be used."""
    text = f"Node group {group}: {problem}"
    return EventMessage("Warning", "NodeGroupMisdeclared", text, "Observe")


AGAIN = 300.0
"""Seconds after which the same thing is told again."""
MOST_KEPT = 50_000


class AutoscalerEvents:
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

    def about(self, obj: KubeObject, notice: EventMessage) -> None:
        """Tell something about an object."""
        if self._is_news(obj.metadata.uid or obj.key, notice):
            self._note(obj, notice)

    def about_all(self, notice: EventMessage) -> None:
        """Tell something about the cluster or a group, by the status ConfigMap."""
        if self._is_news(notice.text, notice):
            self._note(self._status, notice)

    def about_reference(self, about: ObjectReference | None, notice: EventMessage) -> None:
        """Tell something about an object of which only the place is known."""
        if about is None:
            self.about_all(notice)
        elif self._is_news(f"{about.kind} {about.namespace}/{about.name}: {notice.text}", notice):
            meta = {"namespace": about.namespace, "name": about.name, "uid": about.uid}
            obj: Untyped = {"apiVersion": about.api_version, "kind": about.kind, "metadata": meta}
            self._note(obj, notice)

    def _note(self, about: KubeObject | Untyped, notice: EventMessage) -> None:
        self._notes.note(about, notice.type, notice.reason, action=notice.action, text=notice.text)

    def _is_news(self, about: str, notice: EventMessage) -> bool:
        now, key = self._clock.monotonic(), (about, notice.reason)
        text, when = self._told.get(key, ("", 0.0))
        if text == notice.text and now - when < AGAIN:
            return False
        self._told[key] = (notice.text, now)
        self._told.move_to_end(key)
        if len(self._told) > MOST_KEPT:
            self._told.popitem(last=False)
        return True
