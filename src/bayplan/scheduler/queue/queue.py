"""The scheduling queue, as kube-scheduler has it; a pure structure with the time handed in.

- *Active* pods are next, by priority and then by age. The age counts from the last try, so that a
  pod that is tried over and over goes behind its equals.
- *Back-off*: a pod that failed rests, one second at first, twice as long after each try, ten at
  most. When nothing is active those that rest after a refusal are taken before their time; those
  that rest after an error are not.
- *Unschedulable* pods wait for an event that may help them; after five minutes they are tried all
  the same. Whether an event helps is asked once for all pods of one likeness.
- *Gated* pods are kept until their gates are gone.
- *Held* pods would be active, but somebody else says when it is their turn, and takes them.
- *In flight* is a pod from when it is popped until it is placed (`done`), refused or failed. What
  happens meanwhile is kept for it.

A flood of hopeless pods of high priority cannot starve the others: each try sends its pod to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from bayplan.kube.pods import Pod
from bayplan.scheduler.config import Backoff
from bayplan.scheduler.queue.entry import Place, QueuedPod
from bayplan.scheduler.queue.inflight import InFlight
from bayplan.scheduler.queue.judge import Judge, Plugins
from bayplan.scheduler.queue.subqueues import Places

E = TypeVar("E")
Moved = Callable[[Place, str], None]
"""Told that a pod came to a place, and why."""
Holds = Callable[[QueuedPod], bool]
"""Whether a pod that could be tried waits for a turn that somebody else gives it."""


class SchedulingQueue(Generic[E]):
    """Pods that wait to be placed; `E` is what an event is."""

    def __init__(
        self,
        judge: Judge[E],
        *,
        backoff: Backoff | None = None,
        moved: Moved = lambda _place, _why: None,
        holds: Holds = lambda _entry: False,
    ) -> None:
        self._judge = judge
        self._moved = moved
        self._holds = holds
        self._entries: dict[str, QueuedPod] = {}
        self._places = Places(judge.likeness, judge.marks, backoff or Backoff())
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
        """The entry of a pod, wherever it is."""
        return self._entries.get(uid)

    def count(self, place: Place) -> int:
        """How many pods are at a place."""
        return self._places.counts[place]

    @property
    def events_kept(self) -> int:
        """How many events are kept for pods in flight."""
        return self._in_flight.kept

    def newly_held(self) -> list[QueuedPod]:
        """The pods that have come to be held since this was asked last, and still are."""
        arrived, self._places.arrived = self._places.arrived, []
        return [entry for entry in arrived if entry.place is Place.HELD]

    def next_due(self) -> float | None:
        """When `pop` may have something without anybody telling us more; None if never."""
        return self._places.next_due()

    # -- pods come, change and go --------------------------------------------------------------

    def put(self, pod: Pod, now: float) -> None:
        """Take a pod that has no node, new or changed.

        A change of a pod that waits wakes it only if its gates are gone; whether it helps
        otherwise is an event like any other, to be told to `wake`.
        """
        entry = self._entries.get(pod.metadata.uid)
        if entry is None:
            self._arrivals += 1
            entry = QueuedPod(pod, self._judge.priority(pod), self._arrivals, added=now, since=now)
            self._entries[entry.uid] = entry
            self._move(entry, Place.GATED if _gated(pod) else Place.ACTIVE, "PodAdd")
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
        entry = self._places.first_active() or self._first_refused()
        return None if entry is None else self.take(entry, now)

    def take(self, entry: QueuedPod, now: float) -> QueuedPod:
        """Have a pod decided that is held, or is next."""
        entry.attempts += 1
        if entry.first_try is None:
            entry.first_try = now
        self._move(entry, Place.IN_FLIGHT, "Pop")
        self._in_flight.leave(entry.uid)
        return entry

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
        helped = any(
            self._judge.helps(entry.pod, plugins, event)
            for event in self._in_flight.since(entry.uid)
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

    def wake(self, event: E, now: float, *, why: str = "") -> int:
        """Something happened: wake whom it may help; returns how many.

        Pods that wait for the same reason and are alike are asked together, unless the event may
        tell them apart.
        """
        self._in_flight.note(event)
        helped = [
            entry
            for plugins, groups in self._places.groups()
            if self._judge.concerns(plugins, event)
            for group in groups.values()
            for entry in self._helped(group, plugins, event)
        ]
        for entry in helped:
            self._requeue(entry, now, why)
        return len(helped)

    def wake_one(self, uid: str, event: E, now: float, *, why: str = "") -> bool:
        """Something happened that matters to one pod alone; says whether it was woken."""
        entry = self._entries.get(uid)
        if entry is None:
            return False
        if entry.place is Place.IN_FLIGHT:
            self._in_flight.note(event)
        if entry.place is not Place.UNSCHEDULABLE:
            return False
        if not self._judge.helps(entry.pod, entry.plugins, event):
            return False
        self._requeue(entry, now, why)
        return True

    def _helped(self, group: dict[str, QueuedPod], plugins: Plugins, event: E) -> list[QueuedPod]:
        marks = self._judge.sets_apart(plugins, event)
        apart = group.values() if marks is None else self._places.marked(marks, group)
        helped = [one for one in apart if self._judge.helps(one.pod, plugins, event)]
        if len(apart) == len(group):
            return helped
        others = {one.uid for one in apart}
        some = next(one for one in group.values() if one.uid not in others)
        if not self._judge.helps(some.pod, plugins, event):
            return helped
        return [one for one in group.values() if one.uid not in others] + helped

    def activate(self, uid: str, *, why: str = "ForceActivate") -> None:
        """Try a pod at once, whatever it waits for."""
        entry = self._entries.get(uid)
        if entry is not None and entry.place in {Place.UNSCHEDULABLE, Place.BACKOFF}:
            self._move(entry, Place.ACTIVE, why)

    def hold_anew(self) -> None:
        """Who is held has changed: hold those that are active, or let go of those that are held."""
        for entry in tuple(self._entries.values()):
            if entry.place in {Place.ACTIVE, Place.HELD}:
                self._move(entry, Place.ACTIVE, "PodUpdate")

    # -- inside --------------------------------------------------------------------------------

    def _first_refused(self) -> QueuedPod | None:
        """One that rests after a refusal, before its time; those to be held are from now on."""
        while (entry := self._places.first_refused()) is not None and self._holds(entry):
            self._move(entry, Place.ACTIVE, "BackoffComplete")
        return entry

    def _flush(self, now: float) -> None:
        """Whoever has rested, or waited long enough, is active again."""
        while (entry := self._places.rested(now)) is not None:
            self._move(entry, Place.ACTIVE, "BackoffComplete")
        while (entry := self._places.overdue(now)) is not None:
            self._requeue(entry, now, "UnschedulableTimeout")

    def _requeue(self, entry: QueuedPod, now: float, why: str) -> None:
        rested = self._places.rested_at(entry) <= now
        self._move(entry, Place.ACTIVE if rested else Place.BACKOFF, why)

    def _change(self, entry: QueuedPod, pod: Pod) -> None:
        """Take a newer version of a pod; it stays where it is, in its new order."""
        self._places.leave(entry)
        entry.pod = pod
        entry.priority = self._judge.priority(pod)
        self._places.enter(entry)

    def _move(self, entry: QueuedPod, place: Place, why: str) -> None:
        self._places.leave(entry)
        if place is Place.ACTIVE and self._holds(entry):
            place = Place.HELD
        entry.place = place
        self._places.enter(entry)
        self._moved(place, why)


def _gated(pod: Pod) -> bool:
    return bool(pod.spec.scheduling_gates)
