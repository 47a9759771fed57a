"""Pods over time: how many wait (by cause), start, are stuck or run; and how long each took.

Every pod is in one stage at a time. A pod is *stuck* while its node cannot use one of its volumes:
it is bound and attaching failed, until it runs; or it was returned to the scheduling queue because
the volume could not be provisioned for the selected node, until the scheduler reports another
reason. Reports and the demo count in the same way. DaemonSet pods are not counted: they come and go
with their nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.facts import PodFacts
from bayplan.kube.volcano import QUEUE_NAME_ANNOTATIONS, QUEUE_SCHEDULING_GATE
from bayplan.lab.measurement.series import SeriesSet, WaitTimes

FindCause = Callable[[ObjectKey, PodFacts], str]
"""Returns the cause for which a pod is unschedulable."""
IsBinding = Callable[[PodFacts], bool]
"""Returns whether a pod has a selected node and waits for a volume to be provisioned."""
WAITING, STARTING, STUCK, RUNNING = "pods/waiting", "pods/starting", "pods/stuck", "pods/running"
QUEUE, GATE, GANG, SCHEDULER = "queue", "gate", "gang", "scheduler"
BINDING = "volumes being provisioned"
NOT_PROVISIONED, NOT_ATTACHED = "provisioning of volumes", "attachment of volumes"
_BY_REASON = {
    "NotAdmitted": QUEUE,
    "ReservationTimedOut": QUEUE,
    "Schedulable": GANG,
    BINDING: BINDING,
}
_BINDING_FAILED = "binding volumes: "
_NO_NODE_FITS = "0/"
"""How a scheduler's message begins if no node fits: `0/5 nodes are available`."""


@dataclass(slots=True)
class _PodState:
    uid: str
    created: float
    stage: str = ""
    cause: str = ""
    """`waiting/…` or `stuck/…`."""
    message: str = ""
    ran: bool = False
    failed_to_attach: bool = False
    was_stuck: bool = False
    disrupted: bool = False


class PodMeter:
    """Follows all pods."""

    def __init__(self, series: SeriesSet, find_cause: FindCause, is_binding: IsBinding) -> None:
        self._series = series
        self._find_cause = find_cause
        self._is_binding = is_binding
        self._pods: dict[ObjectKey, _PodState] = {}
        self.waits = WaitTimes()
        self.disruptions: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """Pods of the whole run: created, ran, ended, removed (deleted before the end), stuck."""

    def observe(self, key: ObjectKey, pod: PodFacts | None, now: float) -> None:
        """Handle an added, changed or deleted pod."""
        known = self._pods.get(key)
        if known is not None and (pod is None or pod.uid != known.uid):
            self._remove(key, known, now)
            known = None
        if pod is None or is_of_daemon_set(pod):
            return
        if known is None:
            known = self._pods[key] = _PodState(pod.uid, now)
            self.counts["created"] += 1
        if known.stage != "ended":
            self._follow(key, known, pod, now)

    def attach_failed(self, key: ObjectKey, uid: str, now: float) -> None:
        """Handle a failed attachment of a pod's volume: it is stuck until it runs."""
        known = self._pods.get(key)
        if known is None or known.uid != uid:
            return
        known.failed_to_attach = True
        if known.stage == STARTING:
            self._enter(known, STUCK, now, NOT_ATTACHED)

    def waiting_by_cause(self) -> list[tuple[str, int]]:
        """Return the number of pods without a node by cause, largest first."""
        family = (*self._series.family("waiting"), *self._series.family("stuck"))
        found = ((cause, round(one.value)) for cause, one in family if cause != NOT_ATTACHED)
        return sorted(((c, n) for c, n in found if n), key=lambda one: (-one[1], one[0]))

    def finish(self, now: float) -> None:
        """Record the wait times of the pods that have not run by the end."""
        for known in self._pods.values():
            if not known.ran and known.stage != "ended":
                self.waits.censored.append(now - known.created)

    def _follow(self, key: ObjectKey, known: _PodState, pod: PodFacts, now: float) -> None:
        if not known.disrupted and pod.has_condition("DisruptionTarget"):
            known.disrupted = True
            condition = pod.condition("DisruptionTarget")
            self.disruptions[(condition and condition.reason) or "unknown"] += 1
        if pod.is_terminal:
            if pod.phase == "Succeeded":
                self._record_run(known, now)
            self._end(known, now)
        elif not pod.node:
            self._update_waiting(key, known, pod, now)
        elif pod.phase == "Running":
            self._record_run(known, now)
            self._enter(known, RUNNING, now)
        elif known.failed_to_attach:
            self._enter(known, STUCK, now, NOT_ATTACHED)
        else:
            self._enter(known, STARTING, now)

    def _update_waiting(self, key: ObjectKey, known: _PodState, pod: PodFacts, now: float) -> None:
        condition = pod.condition("PodScheduled")
        reason = condition.reason or "" if condition is not None else ""
        message = f"{reason}: {condition.message}" if condition is not None else ""
        if message.startswith(f"{reason}: {_BINDING_FAILED}"):
            self._enter(known, STUCK, now, NOT_PROVISIONED)
            return
        if pod.spec.volumes and self._is_binding(pod):
            reason = message = BINDING
        if known.stage == WAITING and message == known.message:
            return
        known.message = message
        self._enter(known, WAITING, now, self._cause(key, pod, reason, message))

    def _cause(self, key: ObjectKey, pod: PodFacts, reason: str, message: str) -> str:
        gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
        if gates:
            return QUEUE if gates == [QUEUE_SCHEDULING_GATE] else GATE
        if not reason:
            return SCHEDULER
        if reason in _BY_REASON:
            return _BY_REASON[reason]
        refused = message.startswith(f"{reason}: {_NO_NODE_FITS}")
        if not refused and any(pod.annotation(name) for name in QUEUE_NAME_ANNOTATIONS):
            return QUEUE
        return self._find_cause(key, pod)

    def _record_run(self, known: _PodState, now: float) -> None:
        if not known.ran:
            known.ran = True
            self.counts["ran"] += 1
            self.waits.done.append(now - known.created)

    def _end(self, known: _PodState, now: float) -> None:
        self._enter(known, "ended", now)
        self.counts["ended"] += 1
        if not known.ran:
            self.waits.censored.append(now - known.created)

    def _remove(self, key: ObjectKey, known: _PodState, now: float) -> None:
        del self._pods[key]
        if known.stage == "ended":
            return
        self._enter(known, "removed", now)
        self.counts["removed"] += 1
        if not known.ran:
            self.waits.censored.append(now - known.created)

    def _enter(self, known: _PodState, stage: str, now: float, reason: str = "") -> None:
        """Move a pod to another stage; a waiting or stuck pod has a cause, too."""
        cause = f"{stage.removeprefix('pods/')}/{reason}" if reason else ""
        if cause != known.cause:
            self._change(known.cause, -1, now)
            self._change(cause, +1, now)
            known.cause = cause
        if stage == known.stage:
            return
        if known.stage:
            self._series.of(known.stage).add(now, -1)
        if stage.startswith("pods/"):
            self._series.of(stage).add(now, 1)
        if stage == STUCK and not known.was_stuck:
            known.was_stuck = True
            self.counts["stuck"] += 1
        known.stage = stage

    def _change(self, cause: str, by: int, now: float) -> None:
        if cause:
            self._series.of(cause).add(now, by)


def is_of_daemon_set(pod: PodFacts) -> bool:
    """Return whether a pod is a DaemonSet pod."""
    owner = pod.controller
    return owner is not None and owner.kind == "DaemonSet"
