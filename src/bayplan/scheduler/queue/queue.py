"""The scheduling queue, as kube-scheduler has it; a pure structure with the time handed in.

- *Active* pods are next, by priority and then by age. The age counts from the last try, so that a
  pod that is tried over and over goes behind its equals.
- *Back-off*: a pod that failed rests, one second at first, twice as long after each try, ten at
  most. When nothing is active those that rest after a refusal are taken before their time; those
  that rest after an error are not.
- *Unschedulable* pods wait for an event that may help them; after five minutes they are tried all
  the same. Whether an event helps is asked once for all pods of one signature.
- *Gated* pods are kept until their gates are gone.
- *Held* pods would be active, but wait for a turn of their queue, which takes them.
- *In flight* is a pod from when it is popped until it is placed (`done`), refused or failed. What
  happens meanwhile is kept for it.

A flood of hopeless pods of high priority cannot starve the others: each try sends its pod to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from bayplan.kube.pods import Pod
from bayplan.scheduler.config import Backoff
from bayplan.scheduler.queue.entry import QueuedPod, SubQueue
from bayplan.scheduler.queue.hints import Plugins, QueueingHints
from bayplan.scheduler.queue.inflight import InFlight
from bayplan.scheduler.queue.subqueues import SubQueues

E = TypeVar("E")
OnMove = Callable[[SubQueue, str], None]
"""Called when a pod has come to a sub-queue, with the event."""
IsHeld = Callable[[QueuedPod], bool]
"""Whether a pod that could be tried waits for a turn of its queue."""


class SchedulingQueue(Generic[E]):
    """Pods that wait to be placed; `E` is what an event is."""

    def __init__(
        self,
        hints: QueueingHints[E],
        *,
        backoff: Backoff | None = None,
        on_move: OnMove = lambda _subqueue, _why: None,
        is_held: IsHeld = lambda _entry: False,
    ) -> None:
        self._hints = hints
        self._on_move = on_move
        self._is_held = is_held
        self._entries: dict[str, QueuedPod] = {}
        self._subqueues = SubQueues(hints.signature, hints.marks, backoff or Backoff())
        self._in_flight: InFlight[E] = InFlight()
        self._arrivals = 0

    # -- what is there -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._entries.values())

    def __getitem__(self, uid: str) -> QueuedPod:
        return self._entries[uid]

    def get(self, uid: str) -> QueuedPod | None:
        """Return the entry of a pod, in any sub-queue."""
        return self._entries.get(uid)

    def count(self, subqueue: SubQueue) -> int:
        """Return the number of pods in a sub-queue."""
        return self._subqueues.counts[subqueue]

    @property
    def events_kept(self) -> int:
        """The number of events that are kept for pods in flight."""
        return self._in_flight.kept

    def newly_held(self) -> list[QueuedPod]:
        """Return the pods that were moved to HELD since the last call and are still there."""
        arrived, self._subqueues.arrived = self._subqueues.arrived, []
        return [entry for entry in arrived if entry.subqueue is SubQueue.HELD]

    def next_due(self) -> float | None:
        """Return when `pop` may have something without an event; None if never."""
        return self._subqueues.next_due()

    # -- pods come, change and go --------------------------------------------------------------

    def put(self, pod: Pod, now: float) -> None:
        """Add or update a pod without a node.

        A change of a pod that waits wakes it only if its gates are gone; whether it helps
        otherwise is an event like any other, to be passed to `wake`.
        """
        entry = self._entries.get(pod.metadata.uid)
        if entry is None:
            self._arrivals += 1
            entry = QueuedPod(pod, self._hints.priority(pod), self._arrivals, added=now, since=now)
            self._entries[entry.uid] = entry
            self._move(entry, SubQueue.GATED if _is_gated(pod) else SubQueue.ACTIVE, "PodAdd")
            return
        self._change(entry, pod)
        if entry.subqueue is SubQueue.GATED and not pod.spec.scheduling_gates:
            entry.since = now
            self._move(entry, SubQueue.ACTIVE, "GatesGone")
        elif pod.spec.scheduling_gates and entry.subqueue is not SubQueue.IN_FLIGHT:
            self._move(entry, SubQueue.GATED, "PodUpdate")

    def remove(self, uid: str) -> None:
        """Forget a pod: it is gone, or has a node."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._in_flight.back(uid)
            self._move(entry, SubQueue.GONE, "PodDelete")

    # -- tries ---------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """Return the next pod to schedule; None if there is none now."""
        self._flush(now)
        entry = self._subqueues.first_active() or self._first_refused()
        return None if entry is None else self.take(entry, now)

    def take(self, entry: QueuedPod, now: float) -> QueuedPod:
        """Start the scheduling cycle of a pod that is held or next."""
        entry.attempts += 1
        if entry.first_try is None:
            entry.first_try = now
        self._move(entry, SubQueue.IN_FLIGHT, "Pop")
        self._in_flight.leave(entry.uid)
        return entry

    def done(self, entry: QueuedPod) -> None:
        """End the cycle of a pod that got a node; `remove` follows once its node is observed."""
        if entry.subqueue is SubQueue.IN_FLIGHT:
            self._in_flight.back(entry.uid)

    def refused(self, entry: QueuedPod, plugins: frozenset[str], now: float) -> None:
        """Handle a refusal: wait for an event that may help, unless there already was one."""
        if entry.subqueue is not SubQueue.IN_FLIGHT:
            return
        entry.plugins = plugins
        entry.refusals += 1
        entry.failures = 0
        entry.since = now
        helped = any(
            self._hints.helps(entry.pod, plugins, event)
            for event in self._in_flight.since(entry.uid)
        )
        self._in_flight.back(entry.uid)
        if entry.pod.spec.scheduling_gates:
            self._move(entry, SubQueue.GATED, "ScheduleAttemptFailure")
        elif helped:
            self._move(entry, SubQueue.BACKOFF, "ScheduleAttemptFailure")
        else:
            self._move(entry, SubQueue.UNSCHEDULABLE, "ScheduleAttemptFailure")

    def failed(self, entry: QueuedPod, now: float) -> None:
        """Something went wrong that has nothing to do with what fits: rest, and try again."""
        if entry.subqueue is not SubQueue.IN_FLIGHT:
            return
        entry.failures += 1
        entry.plugins = frozenset()
        entry.since = now
        self._in_flight.back(entry.uid)
        gated = bool(entry.pod.spec.scheduling_gates)
        self._move(entry, SubQueue.GATED if gated else SubQueue.BACKOFF, "ScheduleAttemptFailure")

    # -- events --------------------------------------------------------------------------------

    def wake(self, event: E, now: float, *, why: str = "") -> int:
        """Requeue the pods that an event may help; returns how many.

        Pods that wait for the same reason and have one signature are asked together, unless the
        event may distinguish them.
        """
        self._in_flight.note(event)
        helped = [
            entry
            for plugins, groups in self._subqueues.groups()
            if self._hints.concerns(plugins, event)
            for group in groups.values()
            for entry in self._helped(group, plugins, event)
        ]
        for entry in helped:
            self._requeue(entry, now, why)
        return len(helped)

    def wake_one(self, uid: str, event: E, now: float, *, why: str = "") -> bool:
        """Handle an event that concerns one pod alone; returns whether it was woken."""
        entry = self._entries.get(uid)
        if entry is None:
            return False
        if entry.subqueue is SubQueue.IN_FLIGHT:
            self._in_flight.note(event)
        if entry.subqueue is not SubQueue.UNSCHEDULABLE:
            return False
        if not self._hints.helps(entry.pod, entry.plugins, event):
            return False
        self._requeue(entry, now, why)
        return True

    def _helped(self, group: dict[str, QueuedPod], plugins: Plugins, event: E) -> list[QueuedPod]:
        marks = self._hints.sets_apart(plugins, event)
        apart = group.values() if marks is None else self._subqueues.marked(marks, group)
        helped = [one for one in apart if self._hints.helps(one.pod, plugins, event)]
        if len(apart) == len(group):
            return helped
        others = {one.uid for one in apart}
        some = next(one for one in group.values() if one.uid not in others)
        if not self._hints.helps(some.pod, plugins, event):
            return helped
        return [one for one in group.values() if one.uid not in others] + helped

    def activate(self, uid: str, *, why: str = "ForceActivate") -> None:
        """Try a pod at once, whatever it waits for."""
        entry = self._entries.get(uid)
        if entry is not None and entry.subqueue in {SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF}:
            self._move(entry, SubQueue.ACTIVE, why)

    def update_held(self) -> None:
        """Hold the active pods that are to be held now, and activate the others."""
        for entry in tuple(self._entries.values()):
            if entry.subqueue in {SubQueue.ACTIVE, SubQueue.HELD}:
                self._move(entry, SubQueue.ACTIVE, "PodUpdate")

    # -- inside --------------------------------------------------------------------------------

    def _first_refused(self) -> QueuedPod | None:
        """Return a pod that backs off after a refusal, before its time; held ones are moved."""
        while (entry := self._subqueues.first_refused()) is not None and self._is_held(entry):
            self._move(entry, SubQueue.ACTIVE, "BackoffComplete")
        return entry

    def _flush(self, now: float) -> None:
        """Activate the pods whose back-off is over, or that have waited long enough."""
        while (entry := self._subqueues.rested(now)) is not None:
            self._move(entry, SubQueue.ACTIVE, "BackoffComplete")
        while (entry := self._subqueues.overdue(now)) is not None:
            self._requeue(entry, now, "UnschedulableTimeout")

    def _requeue(self, entry: QueuedPod, now: float, why: str) -> None:
        rested = self._subqueues.rested_at(entry) <= now
        self._move(entry, SubQueue.ACTIVE if rested else SubQueue.BACKOFF, why)

    def _change(self, entry: QueuedPod, pod: Pod) -> None:
        """Take a newer version of a pod; it stays where it is, in its new order."""
        self._subqueues.leave(entry)
        entry.pod = pod
        entry.priority = self._hints.priority(pod)
        self._subqueues.enter(entry)

    def _move(self, entry: QueuedPod, subqueue: SubQueue, why: str) -> None:
        self._subqueues.leave(entry)
        if subqueue is SubQueue.ACTIVE and self._is_held(entry):
            subqueue = SubQueue.HELD
        entry.subqueue = subqueue
        self._subqueues.enter(entry)
        self._on_move(subqueue, why)


def _is_gated(pod: Pod) -> bool:
    return bool(pod.spec.scheduling_gates)
