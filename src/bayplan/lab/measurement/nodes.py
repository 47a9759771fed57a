"""Nodes, volumes, queues and scaling over time: readiness, cost, and reasons for scaling.

An instance costs from its creation on; one that fails to be created costs nothing. A ready node
without pods other than DaemonSet pods is idle, and its price counts as idle cost.

A node's attach limit comes from CSINode or, if that has none, from the node's status; nodes without
a limit do not count. `full` counts nodes without a free attach slot.

A queue's share is the largest ratio, over resources, of `allocated` to `deserved`, or to
`capability` if nothing is deserved. Queues without either have no share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.facts import AttachmentFacts, PodFacts
from bayplan.embedded.nodes.machines import SimulatedInstance
from bayplan.kube.quantity import QuantityError, parse
from bayplan.lab.measurement.pods import is_of_daemon_set
from bayplan.lab.measurement.series import MAX_EVENTS, ScalingEvent, SeriesSet

READY, BOOTING, UNWELL = "nodes/ready", "nodes/booting", "nodes/unwell"
START = "start"
RATE, IDLE = "cost/rate", "cost/idle"


@dataclass(slots=True)
class _Instance:
    group: str
    price: float
    created: float
    failed: bool = False


@dataclass(slots=True)
class _Node:
    ready: bool | None = None
    """Whether its condition Ready is true; None while the node does not exist."""
    was_ready: bool = False
    stage: str = ""
    idle: float = 0.0
    """Its current idle cost an hour."""


class NodeMeter:
    """Follows instances, nodes, and the number of pods on nodes."""

    def __init__(self, series: SeriesSet) -> None:
        self._series = series
        self._instances: dict[str, _Instance] = {}
        self._nodes: dict[str, _Node] = {}
        self._pods: Counter[str] = Counter()
        self._nodes_of_pods: dict[ObjectKey, tuple[str, str]] = {}
        self._started: Counter[str] = Counter()
        """By group, the number of instances that existed from the start."""
        self.counts: Counter[str] = Counter()
        """Instances of the whole run: from the start, added, failed, removed."""

    def instance(self, name: str, instance: SimulatedInstance | None, now: float) -> str:
        """Handle an added, changed or removed instance; return the kind of change, if any."""
        known = self._instances.get(name)
        if instance is None and known is not None:
            del self._instances[name]
            return self._record("removed", name, known, -1, now)
        if instance is not None and known is None:
            price = instance.group.instance_type.price
            known = self._instances[name] = _Instance(instance.group.name, price, now)
            return self._record(self._origin(instance, now), name, known, +1, now)
        if instance is None or known is None:
            return ""
        if instance.state == "failed" and not known.failed:
            self._series.of(RATE).correct(known.created, now, -known.price)
            change = self._record("failed", name, known, -1, now)
            known.failed = True
            self._update(name, now)
            return change
        return ""

    def _record(self, what: str, name: str, known: _Instance, change: int, now: float) -> str:
        if not known.failed:
            self._series.of(RATE).add(now, change * known.price)
            self._series.of(f"groups/{known.group}").add(now, change)
        self._update(name, now)
        self.counts[what] += 1
        return what

    def _origin(self, instance: SimulatedInstance, now: float) -> str:
        """Return whether an instance existed from the start or was added.

        The autoscaler may add instances at the same time, but only after those that the cluster
        file counts.
        """
        group = instance.group
        if now <= 0 and self._started[group.name] < group.count:
            self._started[group.name] += 1
            return START
        return "added"

    def group_of(self, name: str) -> str:
        """Return the group of an instance."""
        known = self._instances.get(name)
        return known.group if known is not None else ""

    def node(self, name: str, ready: bool | None, now: float) -> None:
        """Handle the readiness of a node; None if it was deleted."""
        one = self._nodes.setdefault(name, _Node())
        one.ready = ready
        one.was_ready = one.was_ready or bool(ready)
        self._update(name, now)

    def pod(self, key: ObjectKey, pod: PodFacts | None, now: float) -> None:
        """Handle a pod that was bound to a node, or left it."""
        known = self._nodes_of_pods.get(key)
        place = None
        if pod is not None and pod.node and not pod.is_terminal and not is_of_daemon_set(pod):
            place = (pod.uid, pod.node)
        if place == known:
            return
        if known is not None:
            del self._nodes_of_pods[key]
            self._count_pod(known[1], -1, now)
        if place is not None:
            self._nodes_of_pods[key] = place
            self._count_pod(place[1], +1, now)

    def _count_pod(self, node: str, change: int, now: float) -> None:
        self._pods[node] += change
        self._update_idle(node, now)
        if not self._pods[node]:
            del self._pods[node]

    def _update(self, name: str, now: float) -> None:
        """Count a node in its stage, and forget it once its instance and object are gone."""
        one = self._nodes.setdefault(name, _Node())
        stage = _stage(one, self._instances.get(name))
        if stage != one.stage:
            if one.stage:
                self._series.of(one.stage).add(now, -1)
            if stage:
                self._series.of(stage).add(now, 1)
            one.stage = stage
        self._update_idle(name, now)
        if one.ready is None and name not in self._instances:
            del self._nodes[name]

    def _update_idle(self, name: str, now: float) -> None:
        one, instance = self._nodes.get(name), self._instances.get(name)
        if one is None:
            return
        cost = 0.0
        if one.stage == READY and instance is not None and not self._pods.get(name):
            cost = instance.price
        if cost != one.idle:
            self._series.of(IDLE).add(now, cost - one.idle)
            one.idle = cost


def _stage(one: _Node, instance: _Instance | None) -> str:
    """Return the stage of a node: it boots until it is ready once, then it is ready or unwell."""
    if one.ready:
        return READY
    if one.was_ready:
        return UNWELL if one.ready is not None else ""
    return BOOTING if instance is not None and not instance.failed else ""


class VolumeMeter:
    """Follows attachments and attach limits."""

    def __init__(self, series: SeriesSet) -> None:
        self._series = series
        self._attached: dict[str, tuple[str, str]] = {}
        self._used: Counter[tuple[str, str]] = Counter()
        self._limits: dict[str, dict[str, int]] = {}
        self._full: set[tuple[str, str]] = set()

    def attachment(self, name: str, one: AttachmentFacts | None, now: float) -> None:
        """Handle an added, changed or removed attachment."""
        known = self._attached.get(name)
        place = None
        if one is not None and one.status.attached:
            place = (one.spec.node_name, one.spec.attacher)
        if place == known:
            return
        if known is not None:
            del self._attached[name]
            self._use(known, -1, now)
        if place is not None:
            self._attached[name] = place
            self._use(place, +1, now)

    def limits(self, node: str, limits: Mapping[str, int | None], now: float) -> None:
        """Handle the current limits of a node's drivers; empty if the node was deleted."""
        known = self._limits.pop(node, {})
        current = {driver: limit for driver, limit in limits.items() if limit is not None}
        if current:
            self._limits[node] = current
        for driver in sorted({*known, *current}):
            change = current.get(driver, 0) - known.get(driver, 0)
            if change or driver not in known:
                self._series.of(f"limits/{driver}").add(now, change)
            self._update((node, driver), now)

    def _use(self, place: tuple[str, str], change: int, now: float) -> None:
        self._used[place] += change
        self._series.of(f"volumes/{place[1]}").add(now, change)
        if not self._used[place]:
            del self._used[place]
        self._update(place, now)

    def _update(self, place: tuple[str, str], now: float) -> None:
        node, driver = place
        limit = self._limits.get(node, {}).get(driver)
        is_full = limit is not None and self._used[place] >= limit
        if is_full == (place in self._full):
            return
        (self._full.add if is_full else self._full.discard)(place)
        self._series.of(f"full/{driver}").add(now, 1 if is_full else -1)


QUEUES = "queues.scheduling.volcano.sh"


class QueueMeter:
    """Follows the shares of queues."""

    def __init__(self, series: SeriesSet) -> None:
        self._series = series

    def observe(self, name: str, queue: JsonObject | None, now: float) -> None:
        """Handle an added, changed or deleted queue."""
        share = 0.0 if queue is None else share_of(queue)
        if share is not None:
            self._series.of(f"share/{name}").set(now, share)


def share_of(queue: JsonObject) -> float | None:
    """Return the share of a queue; None if it has neither `deserved` nor `capability`."""
    spec = queue.get("spec") or {}
    wanted = _amounts(spec.get("deserved")) or _amounts(spec.get("capability"))
    has = _amounts((queue.get("status") or {}).get("allocated"))
    shares = [has.get(name, 0.0) / amount for name, amount in wanted.items() if amount > 0]
    return max(shares, default=None)


def _amounts(written: object) -> Mapping[str, float]:
    """Return the valid amounts; the scheduler reports others in the status of the queue."""
    found = {}
    for name, text in written.items() if isinstance(written, dict) else ():
        try:
            found[str(name)] = float(parse(text))
        except (QuantityError, TypeError):
            continue
    return found


MAX_CAUSES = 3
_MAX_TEXT = 200
_NODE = re.compile(r"\bnode (\S+) (?:removed|of group)")
FROM_THE_START = "from the start"


class ScalingLog:
    """The scaling events of all node groups."""

    def __init__(self, series: SeriesSet) -> None:
        self._series = series
        self._reasons: dict[str, str] = {}
        self._removed: dict[str, int] = {}
        self.events: list[ScalingEvent] = []
        self.omitted = 0

    def explain_removal(self, node: str, text: str) -> None:
        """Record the message of the autoscaler about a node as the reason of its removal."""
        index = self._removed.get(node)
        if index is None:
            self._reasons[node] = text[:_MAX_TEXT]
        else:
            self.events[index] = msgspec.structs.replace(
                self.events[index], reason=text[:_MAX_TEXT]
            )

    def explain_from_message(self, text: str) -> None:
        """Record a message of the autoscaler that names a removed node."""
        named = _NODE.search(text)
        if named is not None:
            self.explain_removal(named[1], text)

    def added(self, group: str, waiting: Sequence[tuple[str, int]], now: float) -> None:
        """Record an added instance, with the number of waiting pods by cause."""
        causes = ", ".join(f"{count} for {cause}" for cause, count in waiting[:MAX_CAUSES])
        self._record("added", group, f"pods waiting: {causes}" if causes else "", now)

    def started(self, group: str, now: float) -> None:
        """Record an instance that existed from the start."""
        self._record("added", group, FROM_THE_START, now)

    def failed(self, group: str, error: str, now: float) -> None:
        """Record an instance that could not be created."""
        self._record("failed", group, error[:_MAX_TEXT], now)

    def removed(self, name: str, group: str, now: float) -> None:
        """Record a removed instance."""
        self._record("removed", group, self._reasons.pop(name, ""), now)
        if not self.omitted:
            self._removed[name] = len(self.events) - 1

    def _record(self, what: str, group: str, reason: str, now: float) -> None:
        self._series.of(f"scaling/{what}").add(now, 1)
        time = round(now, 3)
        last = self.events[-1] if self.events else None
        from_start = reason == FROM_THE_START
        if (
            last
            and (last.time, last.what, last.group) == (time, what, group)
            and (last.reason == FROM_THE_START) == from_start
        ):
            self.events[-1] = msgspec.structs.replace(last, count=last.count + 1)
        elif len(self.events) < MAX_EVENTS:
            self.events.append(
                ScalingEvent(time=time, what=what, group=group, count=1, reason=reason)
            )
        else:
            self.omitted += 1
