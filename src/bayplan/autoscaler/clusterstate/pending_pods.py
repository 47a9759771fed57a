"""Pending pods, updated as they change, and which of them are unschedulable.

A pod is unschedulable if a scheduler has tried it and found no node, or found one and holds it for
the rest of its gang: it will use capacity that looks free to others. Pods of bypassed schedulers
count before that. Gated pods never count: they may not be scheduled yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from bayplan.autoscaler.options import ScaleUpOptions
from bayplan.base.durations import DurationError, parse_duration
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.pods import Pod
from bayplan.kube.times import read_time

PREFIX = "cluster-autoscaler.kubernetes.io/"
DAEMON = f"{PREFIX}daemonset-pod"
DELAY = f"{PREFIX}pod-scale-up-delay"
QUEUE_GATES = frozenset(
    {"scheduling.volcano.sh/queue-allocation-gate", "volcano.sh/queue-allocation-gate"}
)
"""Scheduling gates that a queue removes."""
_COUNT = frozenset({"Unschedulable", "Schedulable"})
"""Reasons of the PodScheduled condition of pods that fit no node, or not with their gang."""


class PendingState(Enum):
    """The state of a pod without a node."""

    UNSCHEDULABLE = "unschedulable"
    """A scheduler found no node."""
    UNPROCESSED = "scheduler_unprocessed"
    """No scheduler has tried it yet."""
    NOMINATED = "nominated"
    """It is nominated to a node."""
    QUEUED = "queue"
    """It has the scheduling gate of a queue."""
    GATED = "scheduling_gated"
    """It has another scheduling gate."""


def pending_state(pod: Pod) -> PendingState | None:
    """Return the state of a pending pod; None if it is not pending."""
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
    """All pending pods by state."""

    def __init__(self) -> None:
        self._pods: dict[PendingState, dict[str, Pod]] = {state: {} for state in PendingState}
        self._states: dict[str, PendingState] = {}

    def on_event(self, event: ClusterEvent) -> None:
        """Update the state with an added, updated or deleted object."""
        if event.kind is not Pod:
            return
        pod = event.after
        state = pending_state(pod) if isinstance(pod, Pod) else None
        known = self._states.get(event.key)
        if known is not None and known is not state:
            del self._pods[known][event.key], self._states[event.key]
        if state is not None and isinstance(pod, Pod):
            self._pods[state][event.key] = pod
            self._states[event.key] = state

    def of(self, state: PendingState) -> Mapping[str, Pod]:
        """Return the pods in that state, by key."""
        return self._pods[state]

    def with_volumes(self) -> Iterator[Pod]:
        """Yield the pods that a scheduler may place and that have volumes."""
        for state in (PendingState.UNSCHEDULABLE, PendingState.UNPROCESSED):
            yield from (pod for pod in self._pods[state].values() if pod.spec.volumes)


@dataclass(frozen=True, slots=True)
class UnschedulablePods:
    """The unschedulable pods, and the number of ignored pending pods by reason."""

    pods: tuple[Pod, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)


def unschedulable_pods(
    waiting: PendingPods,
    options: ScaleUpOptions,
    now: datetime,
    priority: Callable[[Pod], int],
) -> UnschedulablePods:
    """Return the pods that a scale-up would help."""
    bypassed = frozenset(options.bypassed_scheduler_names)
    early = waiting.of(PendingState.UNPROCESSED)
    candidates = [pod for pod in early.values() if pod.spec.scheduler_name in bypassed]
    unprocessed = len(early) - len(candidates)
    candidates.extend(waiting.of(PendingState.UNSCHEDULABLE).values())
    pods, ignored = _sift(candidates, lambda pod: _ignore_reason(pod, options, now, priority))
    ignored[PendingState.UNPROCESSED.value] += unprocessed
    for state in (PendingState.NOMINATED, PendingState.QUEUED, PendingState.GATED):
        ignored[state.value] += len(waiting.of(state))
    return UnschedulablePods(pods, +ignored)


def _sift(
    candidates: Iterable[Pod], why: Callable[[Pod], str]
) -> tuple[tuple[Pod, ...], Counter[str]]:
    ignored: Counter[str] = Counter()
    pods = []
    for pod in candidates:
        reason = why(pod)
        if reason:
            ignored[reason] += 1
        else:
            pods.append(pod)
    return tuple(pods), ignored


def _ignore_reason(
    pod: Pod, options: ScaleUpOptions, now: datetime, priority: Callable[[Pod], int]
) -> str:
    """Return why a pod is ignored; empty if it is not."""
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
    """Whether a pod is younger than its scale-up delay; its annotation can only extend that."""
    candidates = pod.metadata.annotations.get(DELAY)
    if candidates is not None:
        # An invalid value is ignored.
        with suppress(DurationError):
            delay = max(delay, parse_duration(candidates))
    if delay <= 0:
        return False
    made = read_time(pod.metadata.creation_timestamp)
    return made is not None and (now - made).total_seconds() < delay
