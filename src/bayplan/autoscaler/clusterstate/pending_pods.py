"""Pods that wait for a node, kept as they come and go, and which of them count.

A pod counts if a scheduler has tried it and found no node, or found one and keeps it waiting for
the rest of its gang: it will take room that would look free to the others. Pods of schedulers that
are bypassed count before that. Gated pods never count: nobody has said yet that they may run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from bayplan.autoscaler.options import ScaleUpOptions
from bayplan.base.durations import DurationError, parse_duration
from bayplan.fit.events import Event
from bayplan.kube.pods import Pod
from bayplan.kube.times import read_time

PREFIX = "cluster-autoscaler.kubernetes.io/"
DAEMON = f"{PREFIX}daemonset-pod"
DELAY = f"{PREFIX}pod-scale-up-delay"
QUEUE_GATES = frozenset(
    {"scheduling.volcano.sh/queue-allocation-gate", "volcano.sh/queue-allocation-gate"}
)
"""Gates that a queue lifts."""
_COUNT = frozenset({"Unschedulable", "Schedulable"})
"""What a scheduler says of a pod for which there is no node, or not for the whole of its gang."""


class PendingState(Enum):
    """How a pod without a node stands."""

    UNSCHEDULABLE = "unschedulable"
    """A scheduler found no node."""
    UNPROCESSED = "scheduler_unprocessed"
    """No scheduler has said anything yet."""
    NOMINATED = "nominated"
    """A node is kept for it."""
    QUEUED = "queue"
    """A queue holds it back."""
    GATED = "scheduling_gated"
    """Somebody else does."""


def pending_state(pod: Pod) -> PendingState | None:
    """How a pod waits; None if it does not."""
    if pod.spec.node_name or pod.is_terminal or pod.is_terminating:
        return None
    if pod.spec.scheduling_gates:
        queued = any(gate.name in QUEUE_GATES for gate in pod.spec.scheduling_gates)
        return PendingState.QUEUED if queued else PendingState.GATED
    if pod.status.nominated_node_name:
        return PendingState.NOMINATED
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return (
                PendingState.UNSCHEDULABLE
                if condition.reason in _COUNT
                else PendingState.UNPROCESSED
            )
    return PendingState.UNPROCESSED


class PendingPods:
    """All pods that wait, by how."""

    def __init__(self) -> None:
        self._pods: dict[PendingState, dict[str, Pod]] = {how: {} for how in PendingState}
        self._how: dict[str, PendingState] = {}

    def hear(self, event: Event) -> None:
        """An object came, changed or went."""
        if event.kind is not Pod:
            return
        pod = event.after
        how = pending_state(pod) if isinstance(pod, Pod) else None
        known = self._how.get(event.key)
        if known is not None and known is not how:
            del self._pods[known][event.key], self._how[event.key]
        if how is not None and isinstance(pod, Pod):
            self._pods[how][event.key] = pod
            self._how[event.key] = how

    def of(self, how: PendingState) -> Mapping[str, Pod]:
        """The pods that wait so, by key."""
        return self._pods[how]


@dataclass(frozen=True, slots=True)
class UnschedulablePods:
    """The pods that count, and how many do not, by why."""

    pods: tuple[Pod, ...] = ()
    aside: Mapping[str, int] = field(default_factory=dict)


def unschedulable_pods(
    waiting: PendingPods,
    options: ScaleUpOptions,
    now: datetime,
    priority: Callable[[Pod], int],
) -> UnschedulablePods:
    """Which pods are bought for."""
    bypassed = frozenset(options.bypassed_scheduler_names)
    early = waiting.of(PendingState.UNPROCESSED)
    asked = [pod for pod in early.values() if pod.spec.scheduler_name in bypassed]
    unprocessed = len(early) - len(asked)
    asked.extend(waiting.of(PendingState.UNSCHEDULABLE).values())
    pods, aside = _sift(asked, lambda pod: _aside(pod, options, now, priority))
    aside[PendingState.UNPROCESSED.value] += unprocessed
    for how in (PendingState.NOMINATED, PendingState.QUEUED, PendingState.GATED):
        aside[how.value] += len(waiting.of(how))
    return UnschedulablePods(pods, +aside)


def _sift(asked: Iterable[Pod], why: Callable[[Pod], str]) -> tuple[tuple[Pod, ...], Counter[str]]:
    aside: Counter[str] = Counter()
    pods = []
    for pod in asked:
        said = why(pod)
        if said:
            aside[said] += 1
        else:
            pods.append(pod)
    return tuple(pods), aside


def _aside(pod: Pod, options: ScaleUpOptions, now: datetime, priority: Callable[[Pod], int]) -> str:
    """Why a pod does not count; empty if it does."""
    allowed = options.allowed_scheduler_names
    if allowed and pod.spec.scheduler_name not in allowed:
        return "other scheduler"
    owner = pod.metadata.controller
    if (owner and owner.kind == "DaemonSet") or pod.metadata.annotations.get(DAEMON) == "true":
        return "daemonset"
    if priority(pod) < options.expendable_pods_priority_cutoff:
        return "expendable"
    return "too young" if _is_young(pod, options.new_pod_scale_up_delay, now) else ""


def _is_young(pod: Pod, delay: float, now: datetime) -> bool:
    """Whether a pod is younger than it must be; its annotation can only make it wait longer."""
    asked = pod.metadata.annotations.get(DELAY)
    if asked is not None:
        # What cannot be read asks for nothing.
        with suppress(DurationError):
            delay = max(delay, parse_duration(asked))
    if delay <= 0:
        return False
    made = read_time(pod.metadata.creation_timestamp)
    return made is not None and (now - made).total_seconds() < delay
