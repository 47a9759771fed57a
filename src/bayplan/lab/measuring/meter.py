"""The meter of a run: told of every change, once, and asked for the key figures at the end.

    meter = Meter(lab.simulation, Grid.over(86400), why)
    lab.plane.store.listeners.append(meter.observe)
    await lab.run(86400)
    meter.result(lab.log.digest)

It only looks. What it needs of pods and attachments the simulation has decoded already; it decodes
the few changes of nodes, limits and queues, and of events only those that it is after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, CSI_NODES, EVENTS, NODES, PODS
from bayplan.embedded.csi.volumes import phase
from bayplan.embedded.nodes.registration import condition_status
from bayplan.embedded.simulation.report import driver_limits
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.kube.storage import SELECTED_NODE
from bayplan.lab.measuring import nodes, pods
from bayplan.lab.measuring.nodes import QUEUES, QueueMeter, ScaleLog, VolumeMeter
from bayplan.lab.measuring.series import WITHIN, Grid, Measured, Series, SeriesBook, Waiting, Waits

HOUR = 3600.0


class Figure(NamedTuple):
    """What a figure is, and whether less of it is better."""

    title: str
    unit: str
    explained: str
    less_is_better: bool | None = True


FIGURES: dict[str, Figure] = {
    "cost": Figure("Cost", "money", "What all instances cost, from purchase to removal or end."),
    "costIdle": Figure(
        "Lost on idle nodes", "money", "Of this, for nodes that were ready and had no pods."
    ),
    "nodeHours": Figure("Node hours", "h", "Instances over time, those that booted included."),
    "nodesBought": Figure("Nodes bought", "", "After the start."),
    "nodesRemoved": Figure("Nodes removed", "", "Given back, or gone.", None),
    "nodesFailed": Figure("Purchases failed", "", "Instances that could not be had."),
    "nodesPeak": Figure("Most nodes ready", "", "At any moment.", None),
    "podsCreated": Figure("Pods created", "", "Without those of DaemonSets.", None),
    "podsRan": Figure("Pods that ran", "", "At some time.", less_is_better=False),
    "podsNeverRan": Figure(
        "Pods that never ran", "", "Until the end, or until they were deleted or had failed."
    ),
    "podsStuck": Figure(
        "Pods stuck",
        "",
        "Sent to a node that could not have one of their volumes, if only for a time.",
    ),
    "p50": Figure("Created to running, half", "s", "Half of the pods ran within this time."),
    "p90": Figure("Created to running, 90 %", "s", "Nine of ten pods ran within this time."),
    "p99": Figure("Created to running, 99 %", "s", "99 of 100 pods ran within this time."),
    "podHoursWaiting": Figure(
        "Pod hours waiting", "h", "Pods without a node that are not stuck, over time."
    ),
    "podHoursStuck": Figure("Pod hours stuck", "h", "Pods that were stuck, over time."),
    "waitingAtEnd": Figure("Waiting at the end", "", "Pods that waited when the run ended."),
    "stuckAtEnd": Figure("Stuck at the end", "", "Pods that were stuck when the run ended."),
    "disruptions": Figure("Disruptions", "", "Pods that were preempted, evicted or drained."),
}


def figures(
    book: SeriesBook, sold: Counter[str], measured: pods.PodMeter
) -> dict[str, float | None]:
    """All figures but the quantiles of time, which the meter knows."""
    groups = sum(one.integral() for _, one in book.family("groups"))
    waiting, stuck = book.of(pods.WAITING), book.of(pods.STUCK)
    counts = measured.counts
    return {
        "cost": book.of(nodes.RATE).integral() / HOUR,
        "costIdle": book.of(nodes.IDLE).integral() / HOUR,
        "nodeHours": groups / HOUR,
        "nodesBought": sold["bought"],
        "nodesRemoved": sold["removed"],
        "nodesFailed": sold["failed"],
        "nodesPeak": book.of(nodes.READY).peak,
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

    def __init__(self, simulation: Simulation, grid: Grid, why: pods.Why) -> None:
        self._simulation = simulation
        self._view = simulation.view
        self._grid = grid
        self._book = SeriesBook(grid)
        self.pods = pods.PodMeter(self._book, why, self._is_binding)
        self.nodes = nodes.NodeMeter(self._book)
        self._volumes = VolumeMeter(self._book)
        self._queues = QueueMeter(self._book)
        self._scaling = ScaleLog(self._book)
        self._hear: dict[str, Callable[[Key, Change, float], None]] = {
            PODS: self._pod,
            CLAIMS: self._claim,
            NODES: self._node,
            CSI_NODES: self._limits,
            ATTACHMENTS: self._attachment,
            EVENTS: self._event,
            QUEUES: self._queue,
        }
        simulation.cloud.listeners.append(self._instance)

    def observe(self, change: Change) -> None:
        """Something was written."""
        hear = self._hear.get(change.entry.key.storage)
        if hear is not None:
            hear(change.entry.key, change, self._simulation.now())

    @property
    def stuck(self) -> Series:
        """How many pods are stuck."""
        return self._book.of(pods.STUCK)

    def result(self, digest: str) -> Measured:
        """What the run came to; it is over."""
        self.pods.finish(self._grid.seconds)
        series = {
            name: [_number(one) for one in means] for name, means in self._book.means().items()
        }
        waits = self.pods.waits
        found = figures(self._book, self.nodes.counts, self.pods)
        return Measured(
            seconds=self._grid.seconds,
            series=series,
            figures={name: _rounded(one) for name, one in found.items()} | _quantiles(waits),
            waiting=_waiting(waits),
            events=self._scaling.events,
            events_left_out=self._scaling.left_out,
            digest=digest,
        )

    def _pod(self, key: Key, _: Change, now: float) -> None:
        pod = self._view.pods.get(key)
        self.pods.observe(key, pod, now)
        self.nodes.pod(key, pod, now)

    def _claim(self, key: Key, _: Change, now: float) -> None:
        for user, pod in self._view.pods_using(key.namespace, key.name):
            if not pod.node:
                self.pods.observe(user, pod, now)

    def _is_binding(self, pod: PodFacts) -> bool:
        """A scheduler writes into a claim where it wants the volume, and then waits for it."""
        for name in pod.claims:
            claim = self._view.get(CLAIMS, pod.metadata.namespace, name)
            if claim is not None and phase(claim) == "Pending" and _selected(claim):
                return True
        return False

    def _node(self, key: Key, change: Change, now: float) -> None:
        node = None if change.deleted else self._view.object(key)
        ready = None if node is None else condition_status(node, "Ready") == "True"
        self.nodes.node(key.name, ready, now)
        self._limits(key, change, now)

    def _limits(self, key: Key, _: Change, now: float) -> None:
        self._volumes.limits(key.name, driver_limits(self._view, key.name), now)

    def _attachment(self, key: Key, _: Change, now: float) -> None:
        self._volumes.attachment(key.name, self._view.attachments.get(key.name), now)

    def _queue(self, key: Key, change: Change, now: float) -> None:
        queue = None if change.deleted else change.entry.object()
        self._queues.observe(key.name, queue, now)

    def _event(self, _: Key, change: Change, now: float) -> None:
        data = change.entry.data
        if change.deleted:
            return
        if _ATTACH_FAILED in data:
            about = _decode_event(data).involved_object
            self.pods.attach_failed(Key(PODS, about.namespace, about.name), about.uid, now)
        elif _AUTOSCALER in data:
            event = _decode_event(data)
            if event.reason == "CSIDriverMissing":
                self._scaling.said(event.involved_object.name, event.message)
            elif event.involved_object.kind == "ConfigMap":
                self._scaling.all_said(event.message)

    def _instance(self, name: str) -> None:
        now = self._simulation.now()
        one = self._simulation.cloud.instances.get(name)
        group = self.nodes.group_of(name)
        became = self.nodes.instance(name, one, now)
        if became == "removed":
            self._scaling.removed(name, group, now)
        elif became == "failed" and one is not None:
            self._scaling.failed(one.group.name, one.error, now)
        elif became == nodes.START and one is not None:
            self._scaling.started(one.group.name, now)
        elif became == "bought" and one is not None:
            self._scaling.bought(one.group.name, self.pods.waiting_by_cause(), now)


def _selected(claim: JsonObject) -> bool:
    return bool((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE))


def _waiting(waits: Waits) -> Waiting:
    shares = waits.within(np.array(WITHIN))
    return Waiting(
        pods=len(waits),
        never_ran=len(waits.censored),
        within=[round(float(one), DIGITS) for one in shares],
        quantiles=_quantiles(waits),
    )


def _quantiles(waits: Waits) -> dict[str, float | None]:
    return {name: _rounded(waits.quantile(share)) for name, share in QUANTILES.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else _number(value)


def _number(value: float) -> float:
    """Rounded; no zero is less than nothing."""
    return round(value, DIGITS) + 0.0
