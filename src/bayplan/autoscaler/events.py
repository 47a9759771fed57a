"""Events of the autoscaler: Cluster Autoscaler's reasons and messages, and their recorder.

The same event about the same object is written again only after a while, so that a pod that is
pending for hours has a handful of events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.autoscaler.options import LoopOptions
from bayplan.autoscaler.plan import NoScaleUpInfo, ScaleUp
from bayplan.base.clock import Clock
from bayplan.base.durations import format_duration
from bayplan.client import Untyped
from bayplan.client.events import EventRecorder
from bayplan.kube.events import EventType
from bayplan.kube.meta import KubeObject, ObjectReference

ACTION = "ScaleUp"
MAX_GROUPS = 5
"""The maximum number of groups named for one reason."""


@dataclass(frozen=True, slots=True)
class EventMessage:
    """Type, reason, message and action of an event."""

    type: EventType
    reason: str
    text: str
    action: str = ACTION


def triggered(scale_ups: Iterable[ScaleUp]) -> EventMessage:
    """Return the event of a pod that triggered a scale-up."""
    groups = " ".join(f"{{{one}}}" for one in scale_ups)
    return EventMessage("Normal", "TriggeredScaleUp", f"pod triggered scale-up: [{groups}]")


def not_triggered(left: NoScaleUpInfo) -> EventMessage:
    """Return the event of a pod that didn't trigger a scale-up, with the reasons by group."""
    if not left.by_group:
        return EventMessage(
            "Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: no node groups"
        )
    reasons = ", ".join(_counted_reasons(left.by_group, left.details))
    return EventMessage("Normal", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {reasons}")


def _counted_reasons(
    by_group: Mapping[str, tuple[str, ...]], details: Mapping[str, tuple[str, ...]]
) -> list[str]:
    groups: dict[str, list[str]] = {}
    for name, reasons in sorted(by_group.items()):
        for reason in reasons:
            groups.setdefault(reason, []).append(name)
    found = []
    for reason, names in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])):
        shown = ", ".join(names[:MAX_GROUPS])
        more = f" and {len(names) - MAX_GROUPS} more" if len(names) > MAX_GROUPS else ""
        why = next((details[name] for name in names if details.get(name)), ())
        behind = f": {'; '.join(why)}" if why else ""
        found.append(f"{len(names)} {reason} ({shown}{more}{behind})")
    return found


def scaled_up(done: ScaleUp) -> EventMessage:
    """Return the event of a group that was scaled up."""
    sizes = f"{done.to_size} instead of {done.from_size} (max: {done.max_size})"
    return EventMessage(
        "Normal", "ScaledUpGroup", f"Scale-up: group {done.group} size set to {sizes}"
    )


def failed(group: str, why: str) -> EventMessage:
    """Return the event of a group that could not be scaled up."""
    text = f"Scale-up failed for group {group}: {why}"
    return EventMessage("Warning", "FailedToScaleUpGroup", text)


def timed_out(group: str, timeout: float) -> EventMessage:
    """Return the event of new nodes that did not register in time."""
    waited = format_duration(timeout)
    text = f"Nodes added to group {group} failed to register within {waited}"
    return EventMessage("Warning", "ScaleUpTimedOut", text)


def instances_failed(group: str, count: int, code: str, message: str) -> EventMessage:
    """Return the event of new instances that failed."""
    text = f"Failed adding {count} nodes to group {group} due to {code}: {message}"
    return EventMessage("Warning", "ScaleUpFailed", text)


def nodes_reached(most: int, now: int) -> EventMessage:
    """Return the event that the cluster has its maximum number of nodes."""
    text = f"Max total nodes in cluster reached: {most}. Current number of nodes: {now}"
    return EventMessage("Warning", "MaxNodesTotalReached", text)


def unregistered(instance: str, group: str, problem: str = "") -> EventMessage:
    """Return the event of an unregistered instance that was removed, or could not be."""
    if problem:
        text = f"Failed to remove node {instance} of group {group}: {problem}"
        return EventMessage("Warning", "DeleteUnregisteredFailed", text, "DeleteUnregistered")
    text = f"Removed unregistered node {instance} of group {group}"
    return EventMessage("Normal", "DeleteUnregistered", text, "DeleteUnregistered")


def drivers_missing(node: str, group: str, drivers: Iterable[str], timeout: float) -> EventMessage:
    """Return the event of a node whose CSI drivers did not register in time."""
    names, waited = ", ".join(drivers), format_duration(timeout)
    text = (
        f"Node {node} of group {group} has not reported CSI driver {names} within {waited};"
        " it is not ready and will be removed"
    )
    return EventMessage("Warning", "CSIDriverMissing", text, "RemoveNode")


def driver_broken(group: str, drivers: Iterable[str], missing: int, nodes: int) -> EventMessage:
    """Most nodes of a group lack a driver."""
    text = (
        f"{missing} of {nodes} nodes of group {group} lack CSI driver {', '.join(drivers)}: the"
        " driver does not work; no node is removed, and the group is not scaled up"
    )
    return EventMessage("Warning", "CSIDriverBroken", text, "Observe")


def driver_outlier(text: str) -> EventMessage:
    """A node's driver or limit differs from that of its group."""
    return EventMessage("Warning", "CSIDriverOutlier", f"{text[:1].upper()}{text[1:]}", "Observe")


def size_fixed(group: str, target: int, size: int) -> EventMessage:
    """Return the event of a group whose target size was set to its number of instances."""
    text = f"Group {group} has {size} instances and target size {target}: target size set to {size}"
    return EventMessage("Warning", "FixNodeGroupSize", text, "FixNodeGroupSize")


def misdeclared(group: str, problem: str) -> EventMessage:
    """Return the event of an invalid setting of a group."""
    text = f"Node group {group}: {problem}"
    return EventMessage("Warning", "NodeGroupMisdeclared", text, "Observe")


AGAIN = 300.0
"""Seconds after which the same event is written again."""
MAX_REMEMBERED = 50_000


class AutoscalerEvents:
    """Records events, and suppresses repeated ones."""

    def __init__(self, notes: EventRecorder, options: LoopOptions, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._recorded: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._status: Untyped = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": options.namespace, "name": options.status_config_map_name},
        }

    def about(self, obj: KubeObject, notice: EventMessage) -> None:
        """Record an event about an object."""
        if self._is_news(obj.metadata.uid or obj.key, notice):
            self._note(obj, notice)

    def about_all(self, notice: EventMessage) -> None:
        """Record an event about the cluster or a group, on the status ConfigMap."""
        if self._is_news(notice.text, notice):
            self._note(self._status, notice)

    def about_reference(self, about: ObjectReference | None, notice: EventMessage) -> None:
        """Record an event about an object that is known by reference only."""
        if about is None:
            self.about_all(notice)
        elif self._is_news(f"{about.kind} {about.namespace}/{about.name}: {notice.text}", notice):
            meta = {"namespace": about.namespace, "name": about.name, "uid": about.uid}
            obj: Untyped = {"apiVersion": about.api_version, "kind": about.kind, "metadata": meta}
            self._note(obj, notice)

    def _note(self, about: KubeObject | Untyped, notice: EventMessage) -> None:
        self._notes.record(
            about, notice.type, notice.reason, action=notice.action, note=notice.text
        )

    def _is_news(self, about: str, notice: EventMessage) -> bool:
        now, key = self._clock.monotonic(), (about, notice.reason)
        text, when = self._recorded.get(key, ("", 0.0))
        if text == notice.text and now - when < AGAIN:
            return False
        self._recorded[key] = (notice.text, now)
        self._recorded.move_to_end(key)
        if len(self._recorded) > MAX_REMEMBERED:
            self._recorded.popitem(last=False)
        return True
