"""The meter of a run: observes every change and computes the key figures at the end.

    meter = Meter(lab.simulation, Grid.over(86400), find_cause)
    lab.plane.store.listeners.append(meter.observe)
    await lab.run(86400)
    meter.result(lab.log.digest)

It changes nothing. Pods and attachments are decoded by the simulation already; the meter decodes
changes of nodes, limits and queues, and only the events that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, CSI_NODES, EVENTS, NODES, PODS
from bayplan.embedded.csi.volumes import phase
from bayplan.embedded.nodes.registration import condition_status
from bayplan.embedded.simulation.report import driver_limits
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.kube.storage import SELECTED_NODE
from bayplan.lab.measurement import nodes, pods
from bayplan.lab.measurement.nodes import QUEUES, QueueMeter, ScalingLog, VolumeMeter
from bayplan.lab.measurement.series import (
    WITHIN,
    Grid,
    RunMeasurements,
    SeriesSet,
    StartupTimes,
    StepSeries,
    WaitTimes,
)

HOUR = 3600.0


class FigureInfo(NamedTuple):
    """The title, unit and explanation of a figure, and whether less is better."""

    title: str
    unit: str
    explanation: str
    less_is_better: bool | None = True


FIGURES: dict[str, FigureInfo] = {
    "cost": FigureInfo(
        "Cost", "money", "The cost of all instances, from creation to removal or the end."
    ),
    "costIdle": FigureInfo(
        "Cost of idle nodes", "money", "Of this, for nodes that were ready and had no pods."
    ),
    "nodeHours": FigureInfo("Node hours", "h", "Instances over time, including those that boot."),
    "nodesAdded": FigureInfo("Nodes added", "", "After the start."),
    "nodesRemoved": FigureInfo("Nodes removed", "", "By the autoscaler, or failed.", None),
    "nodesFailed": FigureInfo("Instances failed", "", "Instances that could not be created."),
    "nodesPeak": FigureInfo("Most nodes ready", "", "At any time.", None),
    "podsCreated": FigureInfo("Pods created", "", "Without those of DaemonSets.", None),
    "podsRan": FigureInfo("Pods that ran", "", "At some time.", less_is_better=False),
    "podsNeverRan": FigureInfo(
        "Pods that never ran", "", "Until the end, or until they were deleted or had failed."
    ),
    "podsStuck": FigureInfo(
        "Pods stuck",
        "",
        "Bound to a node that could not use one of their volumes, at least for a time.",
    ),
    "p50": FigureInfo("Created to running, half", "s", "Half of the pods ran within this time."),
    "p90": FigureInfo("Created to running, 90 %", "s", "Nine of ten pods ran within this time."),
    "p99": FigureInfo("Created to running, 99 %", "s", "99 of 100 pods ran within this time."),
    "podHoursWaiting": FigureInfo(
        "Pod hours waiting", "h", "Pods without a node that are not stuck, over time."
    ),
    "podHoursStuck": FigureInfo("Pod hours stuck", "h", "Pods that were stuck, over time."),
    "waitingAtEnd": FigureInfo("Waiting at the end", "", "Pods that waited when the run ended."),
    "stuckAtEnd": FigureInfo("Stuck at the end", "", "Pods that were stuck when the run ended."),
    "disruptions": FigureInfo("Disruptions", "", "Pods that were preempted, evicted or drained."),
}


def figures(
    series: SeriesSet, instances: Counter[str], measured: pods.PodMeter
) -> dict[str, float | None]:
    """Return all figures except the quantiles of times, which the meter adds."""
    groups = sum(found.integral() for _, found in series.family("groups"))
    waiting, stuck = series.of(pods.WAITING), series.of(pods.STUCK)
    counts = measured.counts
    return {
        "cost": series.of(nodes.RATE).integral() / HOUR,
        "costIdle": series.of(nodes.IDLE).integral() / HOUR,
        "nodeHours": groups / HOUR,
        "nodesAdded": instances["added"],
        "nodesRemoved": instances["removed"],
        "nodesFailed": instances["failed"],
        "nodesPeak": series.of(nodes.READY).peak,
        "podsCreated": counts["created"],
        "podsRan": counts["ran"],
        "podsNeverRan": len(measured.waits.censored),
        "podsStuck": counts["stuck"],
        "podHoursWaiting": waiting.integral() / HOUR,
        "podHoursStuck": stuck.integral() / HOUR,
        "waitingAtEnd": waiting.value,
        "stuckAtEnd": stuck.value,
        "disruptions": sum(measured.disruptions.values()),
    }


_ATTACH_FAILED = b'"FailedAttachVolume"'
_AUTOSCALER = b'"cluster-autoscaler"'
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
DIGITS = 6


class _About(msgspec.Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Event(msgspec.Struct, rename="camel"):
    involved_object: _About = msgspec.field(default_factory=_About)
    reason: str = ""
    message: str = ""


_decode_event = msgspec.json.Decoder(_Event).decode


class Meter:
    """Measures one simulation."""

    def __init__(self, simulation: Simulation, grid: Grid, find_cause: pods.FindCause) -> None:
        self._simulation = simulation
        self._view = simulation.view
        self._grid = grid
        self._series = SeriesSet(grid)
        self.pods = pods.PodMeter(self._series, find_cause, self._is_binding)
        self.nodes = nodes.NodeMeter(self._series)
        self._volumes = VolumeMeter(self._series)
        self._queues = QueueMeter(self._series)
        self._scaling = ScalingLog(self._series)
        self._handlers: dict[str, Callable[[ObjectKey, WatchCacheEvent, float], None]] = {
            PODS: self._pod,
            CLAIMS: self._claim,
            NODES: self._node,
            CSI_NODES: self._limits,
            ATTACHMENTS: self._attachment,
            EVENTS: self._event,
            QUEUES: self._queue,
        }
        simulation.cloud.listeners.append(self._instance)

    def observe(self, change: WatchCacheEvent) -> None:
        """Handle a change of an object."""
        handler = self._handlers.get(change.entry.key.storage)
        if handler is not None:
            handler(change.entry.key, change, self._simulation.now())

    @property
    def stuck(self) -> StepSeries:
        """The number of stuck pods."""
        return self._series.of(pods.STUCK)

    def result(self, digest: str) -> RunMeasurements:
        """Return the measurements of a run that has ended."""
        self.pods.finish(self._grid.seconds)
        series = {
            name: [_number(mean) for mean in means] for name, means in self._series.means().items()
        }
        waits = self.pods.waits
        found = figures(self._series, self.nodes.counts, self.pods)
        return RunMeasurements(
            seconds=self._grid.seconds,
            series=series,
            figures={name: _rounded(figure) for name, figure in found.items()} | _quantiles(waits),
            startup=_startup_times(waits),
            events=self._scaling.events,
            events_omitted=self._scaling.omitted,
            digest=digest,
        )

    def _pod(self, key: ObjectKey, _: WatchCacheEvent, now: float) -> None:
        pod = self._view.pods.get(key)
        self.pods.observe(key, pod, now)
        self.nodes.pod(key, pod, now)

    def _claim(self, key: ObjectKey, _: WatchCacheEvent, now: float) -> None:
        for user, pod in self._view.pods_using(key.namespace, key.name):
            if not pod.node:
                self.pods.observe(user, pod, now)

    def _is_binding(self, pod: PodFacts) -> bool:
        """Return whether a pod waits for a volume that is provisioned for its selected node."""
        for name in pod.claims:
            claim = self._view.get(CLAIMS, pod.metadata.namespace, name)
            if claim is not None and phase(claim) == "Pending" and _selected(claim):
                return True
        return False

    def _node(self, key: ObjectKey, change: WatchCacheEvent, now: float) -> None:
        node = None if change.deleted else self._view.object(key)
        ready = None if node is None else condition_status(node, "Ready") == "True"
        self.nodes.node(key.name, ready, now)
        self._limits(key, change, now)

    def _limits(self, key: ObjectKey, _: WatchCacheEvent, now: float) -> None:
        self._volumes.limits(key.name, driver_limits(self._view, key.name), now)

    def _attachment(self, key: ObjectKey, _: WatchCacheEvent, now: float) -> None:
        self._volumes.attachment(key.name, self._view.attachments.get(key.name), now)

    def _queue(self, key: ObjectKey, change: WatchCacheEvent, now: float) -> None:
        queue = None if change.deleted else change.entry.object()
        self._queues.observe(key.name, queue, now)

    def _event(self, _: ObjectKey, change: WatchCacheEvent, now: float) -> None:
        data = change.entry.data
        if change.deleted:
            return
        if _ATTACH_FAILED in data:
            about = _decode_event(data).involved_object
            self.pods.attach_failed(ObjectKey(PODS, about.namespace, about.name), about.uid, now)
        elif _AUTOSCALER in data:
            event = _decode_event(data)
            if event.reason == "CSIDriverMissing":
                self._scaling.explain_removal(event.involved_object.name, event.message)
            elif event.involved_object.kind == "ConfigMap":
                self._scaling.explain_from_message(event.message)

    def _instance(self, name: str) -> None:
        now = self._simulation.now()
        instance = self._simulation.cloud.instances.get(name)
        group = self.nodes.group_of(name)
        change = self.nodes.instance(name, instance, now)
        if change == "removed":
            self._scaling.removed(name, group, now)
        elif change == "failed" and instance is not None:
            self._scaling.failed(instance.group.name, instance.error, now)
        elif change == nodes.START and instance is not None:
            self._scaling.started(instance.group.name, now)
        elif change == "added" and instance is not None:
            self._scaling.added(instance.group.name, self.pods.waiting_by_cause(), now)


def _selected(claim: JsonObject) -> bool:
    return bool((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE))


def _startup_times(waits: WaitTimes) -> StartupTimes:
    shares = waits.within(np.array(WITHIN))
    return StartupTimes(
        pods=len(waits),
        never_ran=len(waits.censored),
        within=[round(float(share), DIGITS) for share in shares],
        quantiles=_quantiles(waits),
    )


def _quantiles(waits: WaitTimes) -> dict[str, float | None]:
    return {name: _rounded(waits.quantile(share)) for name, share in QUANTILES.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else _number(value)


def _number(value: float) -> float:
    """Return the rounded value, without a negative zero."""
    return round(value, DIGITS) + 0.0
