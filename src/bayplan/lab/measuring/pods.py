"""Pods over time: how many wait for what, start, are stuck, run; and how long each took.

Every pod is in one stage at a time. One is *stuck* while a node that it was sent to cannot have one
of its volumes: it has the node and attaching failed, until it runs there after all; or it was sent
back since the volume could not be made for that node, until its scheduler says something else.
Reports and the demo both count by this. Pods of DaemonSets are left out: they come and go with
their nodes and wait for nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import PodFacts
from bayplan.kube.queueing import QUEUE_ALLOCATION_GATE, QUEUE_NAME_ANNOTATIONS
from bayplan.lab.measuring.series import SeriesBook, Waits

Why = Callable[[Key, PodFacts], str]
"""The true cause for which a pod waits that nodes refuse."""
IsBinding = Callable[[PodFacts], bool]
"""Whether a pod has its place, and waits there for a volume to be made."""
WAITING, STARTING, STUCK, RUNNING = "pods/waiting", "pods/starting", "pods/stuck", "pods/running"
QUEUE, GATE, GANG, SCHEDULER = "queue", "gate", "gang", "scheduler"
BINDING = "volumes being made"
NOT_MADE, NOT_ATTACHED = "volumes that cannot be made", "volumes that cannot be attached"
_BY_REASON = {
    "NotAdmitted": QUEUE,
    "ReservationTimedOut": QUEUE,
    "Schedulable": GANG,
    BINDING: BINDING,
}
_BINDING_FAILED = "binding volumes: "
_NODES_REFUSE = "0/"
"""How a scheduler's message begins if nodes refuse the pod: `0/5 nodes are available`."""


@dataclass(slots=True)
class _Known:
    uid: str
    created: float
    stage: str = ""
    cause: str = ""
    """`waiting/…` or `stuck/…`."""
    said: str = ""
    ran: bool = False
    failed_to_attach: bool = False
    was_stuck: bool = False
    disrupted: bool = False


class PodMeter:
    """Follows all pods."""

    def __init__(self, book: SeriesBook, why: Why, is_binding: IsBinding) -> None:
        self._book = book
        self._why = why
        self._is_binding = is_binding
        self._pods: dict[Key, _Known] = {}
        self.waits = Waits()
        self.disruptions: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """Of the whole run: created, ran, ended, removed (deleted before they ended), stuck."""

    def observe(self, key: Key, pod: PodFacts | None, now: float) -> None:
        """A pod came, changed, or went."""
        known = self._pods.get(key)
        if known is not None and (pod is None or pod.uid != known.uid):
            self._went(key, known, now)
            known = None
        if pod is None or is_of_daemon_set(pod):
            return
        if known is None:
            known = self._pods[key] = _Known(pod.uid, now)
            self.counts["created"] += 1
        if known.stage != "ended":
            self._follow(key, known, pod, now)

    def attach_failed(self, key: Key, uid: str, now: float) -> None:
        """A volume of a pod could not be attached: it is stuck until it runs after all."""
        known = self._pods.get(key)
        if known is None or known.uid != uid:
            return
        known.failed_to_attach = True
        if known.stage == STARTING:
            self._enter(known, STUCK, now, NOT_ATTACHED)

    def waiting_by_cause(self) -> list[tuple[str, int]]:
        """How many that have no node wait for what just now, most first."""
        family = (*self._book.family("waiting"), *self._book.family("stuck"))
        found = ((cause, round(one.value)) for cause, one in family if cause != NOT_ATTACHED)
        return sorted(((c, n) for c, n in found if n), key=lambda one: (-one[1], one[0]))

    def finish(self, now: float) -> None:
        """The run is over: those that have not run by now had not."""
        for known in self._pods.values():
            if not known.ran and known.stage != "ended":
                self.waits.censored.append(now - known.created)

    def _follow(self, key: Key, known: _Known, pod: PodFacts, now: float) -> None:
        if not known.disrupted and pod.has("DisruptionTarget"):
            known.disrupted = True
            condition = pod.condition("DisruptionTarget")
            self.disruptions[(condition and condition.reason) or "unknown"] += 1
        if pod.terminal:
            if pod.phase == "Succeeded":
                self._runs(known, now)
            self._end(known, now)
        elif not pod.node:
            self._wait(key, known, pod, now)
        elif pod.phase == "Running":
            self._runs(known, now)
            self._enter(known, RUNNING, now)
        elif known.failed_to_attach:
            self._enter(known, STUCK, now, NOT_ATTACHED)
        else:
            self._enter(known, STARTING, now)

    def _wait(self, key: Key, known: _Known, pod: PodFacts, now: float) -> None:
        condition = pod.condition("PodScheduled")
        reason = condition.reason or "" if condition is not None else ""
        said = f"{reason}: {condition.message}" if condition is not None else ""
        if said.startswith(f"{reason}: {_BINDING_FAILED}"):
            self._enter(known, STUCK, now, NOT_MADE)
            return
        if pod.spec.volumes and self._is_binding(pod):
            reason = said = BINDING
        if known.stage == WAITING and said == known.said:
            return
        known.said = said
        self._enter(known, WAITING, now, self._cause(key, pod, reason, said))

    def _cause(self, key: Key, pod: PodFacts, reason: str, said: str) -> str:
        gates = [one.name for one in pod.spec.scheduling_gates or ()]
        if gates:
            return QUEUE if gates == [QUEUE_ALLOCATION_GATE] else GATE
        if not reason:
            return SCHEDULER
        if reason in _BY_REASON:
            return _BY_REASON[reason]
        refused = said.startswith(f"{reason}: {_NODES_REFUSE}")
        if not refused and any(pod.annotation(one) for one in QUEUE_NAME_ANNOTATIONS):
            return QUEUE
        return self._why(key, pod)

    def _runs(self, known: _Known, now: float) -> None:
        if not known.ran:
            known.ran = True
            self.counts["ran"] += 1
            self.waits.done.append(now - known.created)

    def _end(self, known: _Known, now: float) -> None:
        self._enter(known, "ended", now)
        self.counts["ended"] += 1
        if not known.ran:
            self.waits.censored.append(now - known.created)

    def _went(self, key: Key, known: _Known, now: float) -> None:
        del self._pods[key]
        if known.stage == "ended":
            return
        self._enter(known, "removed", now)
        self.counts["removed"] += 1
        if not known.ran:
            self.waits.censored.append(now - known.created)

    def _enter(self, known: _Known, stage: str, now: float, why: str = "") -> None:
        """Leave a stage for another; whoever waits or is stuck has a cause, too."""
        cause = f"{stage.removeprefix('pods/')}/{why}" if why else ""
        if cause != known.cause:
            self._change(known.cause, -1, now)
            self._change(cause, +1, now)
            known.cause = cause
        if stage == known.stage:
            return
        if known.stage:
            self._book.of(known.stage).add(now, -1)
        if stage.startswith("pods/"):
            self._book.of(stage).add(now, 1)
        if stage == STUCK and not known.was_stuck:
            known.was_stuck = True
            self.counts["stuck"] += 1
        known.stage = stage

    def _change(self, cause: str, by: int, now: float) -> None:
        if cause:
            self._book.of(cause).add(now, by)


def is_of_daemon_set(pod: PodFacts) -> bool:
    """Whether a pod is a DaemonSet's."""
    owner = pod.controller
    return owner is not None and owner.kind == "DaemonSet"
