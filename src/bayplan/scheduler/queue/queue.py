"""The scheduling queue, as kube-scheduler has it; a pure structure with the time handed in.

- *Active* pods are next, by priority and then by age. The age counts from the last try, so that a
  pod that is tried over and over goes behind its equals.
- *Back-off*: a pod that failed rests, one second at first, twice as long after each try, ten at
  most. When nothing is active those that rest after a refusal are taken before their time; those
  that rest after an error are not.
- *Unschedulable* pods wait for an event that may help them; after five minutes they are tried all
  the same. Whether an event helps is asked once for all pods of one likeness.
- *Gated* pods are held until their gates are gone.
- *In flight* is a pod from when it is popped until it is placed (`done`), refused or failed. What
  happens meanwhile is kept for it.

A flood of hopeless pods of high priority cannot starve the others: each try sends its pod to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from bayplan.kube.pods import Pod
from bayplan.scheduler.config import Backoff
from bayplan.scheduler.queue.entry import Place, QueuedPod
from bayplan.scheduler.queue.heap import Heap
from bayplan.scheduler.queue.inflight import InFlight

E = TypeVar("E")
Helps = Callable[[Pod, frozenset[str], E], bool]
"""Whether an event may unblock a pod that these plugins refused."""
Moved = Callable[[QueuedPod, Place, str], None]
"""Told that a pod came to a place, and why."""
LONGEST_WAIT = 300.0
"""Seconds after which a pod is tried even if nothing has happened that might help it."""


class SchedulingQueue(Generic[E]):
    """Pods that wait to be placed; `E` is what an event is."""

    def __init__(
        self,
        helps: Helps[E],
        *,
        backoff: Backoff | None = None,
        priority: Callable[[Pod], int] = lambda pod: pod.spec.priority or 0,
        likeness: Callable[[Pod], Hashable] = lambda _pod: None,
        moved: Moved = lambda _entry, _place, _why: None,
    ) -> None:
        self._helps = helps
        self._backoff = backoff or Backoff()
        self._priority = priority
        self._likeness = likeness
        self._moved = moved
        self._entries: dict[str, QueuedPod] = {}
        self._active = Heap(Place.ACTIVE, lambda entry: entry.order)
        self._resting = Heap(Place.BACKOFF, self._rested_at)
        self._refused = Heap(Place.BACKOFF, lambda entry: (self._rested_at(entry), entry.order))
        self._waiting = Heap(Place.UNSCHEDULABLE, lambda entry: entry.since)
        self._groups: dict[Hashable, dict[str, QueuedPod]] = {}
        self._in_flight: InFlight[E] = InFlight()
        self._counts = dict.fromkeys(Place, 0)
        self._arrivals = 0

    # -- what is there -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._entries.values())

    def get(self, uid: str) -> QueuedPod | None:
        """The entry of a pod, wherever it is."""
        return self._entries.get(uid)

    def count(self, place: Place) -> int:
        """How many pods are at a place."""
        return self._counts[place]

    @property
    def events_kept(self) -> int:
        """How many events are kept for pods in flight."""
        return self._in_flight.kept

    def next_due(self) -> float | None:
        """When `pop` may have something without anybody telling us more; None if never."""
        times = []
        if (first := self._resting.first()) is not None:
            times.append(self._rested_at(first))
        if (first := self._waiting.first()) is not None:
            times.append(first.since + LONGEST_WAIT)
        return min(times, default=None)

    # -- pods come, change and go --------------------------------------------------------------

    def put(self, pod: Pod, now: float) -> None:
        """Take a pod that has no node, new or changed.

        A change of a pod that waits wakes it only if its gates are gone; whether it helps
        otherwise is an event like any other, to be told to `wake`.
        """
        entry = self._entries.get(pod.metadata.uid)
        if entry is None:
            self._arrivals += 1
            entry = QueuedPod(pod, self._priority(pod), self._arrivals, added=now, since=now)
            self._entries[entry.uid] = entry
            self._move(entry, _door(pod), "PodAdd")
            return
        self._change(entry, pod)
        if entry.place is Place.GATED and not pod.spec.scheduling_gates:
            entry.since = now
            self._move(entry, Place.ACTIVE, "GatesGone")
        elif pod.spec.scheduling_gates and entry.place is not Place.IN_FLIGHT:
            self._move(entry, Place.GATED, "PodUpdate")

    def remove(self, uid: str) -> None:
        """Forget a pod: it is gone, or has a node."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._in_flight.back(uid)
            self._move(entry, Place.GONE, "PodDelete")

    # -- tries ---------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to decide, or None if there is nothing to do now."""
        self._flush(now)
        entry = self._active.first() or self._refused.first()
        return None if entry is None else self._take(entry, now)

    def pop_like(self, likeness: Hashable, now: float) -> QueuedPod | None:
        """The next pod to decide, but only if it is active and of that likeness."""
        entry = self._active.first()
        if entry is None or entry.likeness is None or entry.likeness != likeness:
            return None
        return self._take(entry, now)

    def done(self, entry: QueuedPod) -> None:
        """A pod in flight has its place; it is forgotten when its node is seen (`remove`)."""
        if entry.place is Place.IN_FLIGHT:
            self._in_flight.back(entry.uid)

    def refused(self, entry: QueuedPod, plugins: frozenset[str], now: float) -> None:
        """No node fits: wait for an event that may help, unless one has already come."""
        if entry.place is not Place.IN_FLIGHT:
            return
        entry.plugins = plugins
        entry.refusals += 1
        entry.failures = 0
        entry.since = now
        helped = not plugins or (
            entry.uid in self._in_flight
            and any(self._helps(entry.pod, plugins, e) for e in self._in_flight.since(entry.uid))
        )
        self._in_flight.back(entry.uid)
        if entry.pod.spec.scheduling_gates:
            self._move(entry, Place.GATED, "ScheduleAttemptFailure")
        elif helped:
            self._move(entry, Place.BACKOFF, "ScheduleAttemptFailure")
        else:
            self._move(entry, Place.UNSCHEDULABLE, "ScheduleAttemptFailure")

    def failed(self, entry: QueuedPod, now: float) -> None:
        """Something went wrong that has nothing to do with what fits: rest, and try again."""
        if entry.place is not Place.IN_FLIGHT:
            return
        entry.failures += 1
        entry.plugins = frozenset()
        entry.since = now
        self._in_flight.back(entry.uid)
        gated = bool(entry.pod.spec.scheduling_gates)
        self._move(entry, Place.GATED if gated else Place.BACKOFF, "ScheduleAttemptFailure")

    # -- events --------------------------------------------------------------------------------

    def wake(self, event: E, now: float, *, why: str = "", each: bool = False) -> int:
        """Something happened: wake whom it may help; returns how many.

        Pods that wait for the same reason and are alike are asked together, unless `each` says
        that the event tells them apart (it is about a pod's own claim, say).
        """
        self._in_flight.note(event)
        woken = 0
        for group in list(self._groups.values()):
            asked = list(group.values())
            if each:
                asked = [one for one in asked if self._helps(one.pod, one.plugins, event)]
            elif not self._helps(asked[0].pod, asked[0].plugins, event):
                continue
            for entry in asked:
                self._requeue(entry, now, why)
            woken += len(asked)
        return woken

    def activate(self, uid: str, *, why: str = "ForceActivate") -> None:
        """Try a pod at once, whatever it waits for."""
        entry = self._entries.get(uid)
        if entry is not None and entry.place in {Place.UNSCHEDULABLE, Place.BACKOFF}:
            self._move(entry, Place.ACTIVE, why)

    # -- inside --------------------------------------------------------------------------------

    def _take(self, entry: QueuedPod, now: float) -> QueuedPod:
        entry.attempts += 1
        if entry.first_try is None:
            entry.first_try = now
        self._move(entry, Place.IN_FLIGHT, "Pop")
        self._in_flight.leave(entry.uid)
        return entry

    def _flush(self, now: float) -> None:
        """Whoever has rested, or waited long enough, is active again."""
        while (entry := self._resting.first()) is not None and self._rested_at(entry) <= now:
            self._move(entry, Place.ACTIVE, "BackoffComplete")
        while (entry := self._waiting.first()) is not None and entry.since + LONGEST_WAIT <= now:
            self._requeue(entry, now, "UnschedulableTimeout")

    def _requeue(self, entry: QueuedPod, now: float, why: str) -> None:
        rested = self._rested_at(entry) <= now
        self._move(entry, Place.ACTIVE if rested else Place.BACKOFF, why)

    def _rested_at(self, entry: QueuedPod) -> float:
        tries = entry.failures or entry.refusals
        if not tries:
            return entry.since
        longest = min(tries - 1, 64)
        return entry.since + min(self._backoff.most, self._backoff.initial * 2.0**longest)

    def _change(self, entry: QueuedPod, pod: Pod) -> None:
        """Take a newer version of a pod; it stays where it is, in its new order."""
        self._leave(entry)
        entry.pod = pod
        entry.priority = self._priority(pod)
        self._enter(entry)

    def _move(self, entry: QueuedPod, place: Place, why: str) -> None:
        self._leave(entry)
        entry.place = place
        self._enter(entry)
        self._moved(entry, place, why)

    def _enter(self, entry: QueuedPod) -> None:
        entry.stamp += 1
        self._counts[entry.place] += 1
        match entry.place:
            case Place.ACTIVE:
                entry.likeness = self._likeness(entry.pod)
                self._active.push(entry)
            case Place.BACKOFF:
                self._resting.push(entry)
                if not entry.failures:
                    self._refused.push(entry)
            case Place.UNSCHEDULABLE:
                entry.likeness = self._likeness(entry.pod)
                self._waiting.push(entry)
                self._groups.setdefault(entry.group, {})[entry.uid] = entry
            case _:
                pass

    def _leave(self, entry: QueuedPod) -> None:
        self._counts[entry.place] -= 1
        match entry.place:
            case Place.ACTIVE:
                self._active.left()
            case Place.BACKOFF:
                self._resting.left()
                if not entry.failures:
                    self._refused.left()
            case Place.UNSCHEDULABLE:
                self._waiting.left()
                group = self._groups[entry.group]
                del group[entry.uid]
                if not group:
                    del self._groups[entry.group]
            case _:
                pass


def _door(pod: Pod) -> Place:
    return Place.GATED if pod.spec.scheduling_gates else Place.ACTIVE
