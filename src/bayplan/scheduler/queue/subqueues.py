"""The sub-queues: active, back-off and unschedulable pods, and which is next in each.

An entry is in one sub-queue at a time. Unschedulable pods are also kept in groups, by the plugins
that refused them and by signature, so that an event is asked about once a group, and found by their
marks (claims) where an event is about these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator

from bayplan.base.flowcontrol import exponential_delay
from bayplan.kube.pods import Pod
from bayplan.scheduler.config import Backoff
from bayplan.scheduler.queue.entry import QueuedPod, SubQueue
from bayplan.scheduler.queue.heap import Heap
from bayplan.scheduler.queue.hints import Plugins

LONGEST_WAIT = 300.0
"""Seconds after which a pod is tried even if nothing has happened that might help it."""
Group = dict[str, QueuedPod]


class SubQueues:
    """Moves entries between sub-queues."""

    def __init__(
        self,
        signature: Callable[[Pod], Hashable],
        marks: Callable[[Pod], Collection[str]],
        backoff: Backoff,
    ) -> None:
        self._signature = signature
        self._marks = marks
        self._backoff = backoff
        self._active = Heap(SubQueue.ACTIVE, lambda entry: entry.order)
        self._resting = Heap(SubQueue.BACKOFF, self.rested_at)
        self._refused = Heap(SubQueue.BACKOFF, lambda entry: (self.rested_at(entry), entry.order))
        self._waiting = Heap(SubQueue.UNSCHEDULABLE, lambda entry: entry.since)
        self._groups: dict[Plugins, dict[Hashable, Group]] = {}
        self._marked: dict[str, Group] = {}
        self.counts = dict.fromkeys(SubQueue, 0)
        self.arrived: list[QueuedPod] = []
        """The pods that came to be held, in the order in which they came."""

    def first_active(self) -> QueuedPod | None:
        """Return the first active entry."""
        return self._active.first()

    def first_refused(self) -> QueuedPod | None:
        """Return the refused entry whose backoff started first; not those after an error."""
        return self._refused.first()

    def rested(self, now: float) -> QueuedPod | None:
        """Return an entry whose backoff is over."""
        entry = self._resting.first()
        return entry if entry is not None and self.rested_at(entry) <= now else None

    def overdue(self, now: float) -> QueuedPod | None:
        """Return an entry that has waited for events longer than the maximum."""
        entry = self._waiting.first()
        return entry if entry is not None and entry.since + LONGEST_WAIT <= now else None

    def next_due(self) -> float | None:
        """Return when the next back-off or wait is over; None if there is none."""
        times = []
        if (first := self._resting.first()) is not None:
            times.append(self.rested_at(first))
        if (first := self._waiting.first()) is not None:
            times.append(first.since + LONGEST_WAIT)
        return min(times, default=None)

    def rested_at(self, entry: QueuedPod) -> float:
        """Return when the backoff of an entry ends: it doubles with every attempt, to a maximum."""
        tries = entry.failures or entry.refusals
        if not tries:
            return entry.since
        return entry.since + exponential_delay(self._backoff.initial, self._backoff.most, tries - 1)

    def groups(self) -> Iterator[tuple[Plugins, dict[Hashable, Group]]]:
        """Return unschedulable pods by the plugins that refused them and by signature."""
        return iter(self._groups.items())

    def marked(self, marks: Collection[str], group: Group) -> list[QueuedPod]:
        """Return the pods of a group that have one of these marks, in the group's order."""
        found = {uid for mark in marks for uid in self._marked.get(mark, ()) if uid in group}
        return sorted((group[uid] for uid in found), key=lambda entry: entry.number)

    def enter(self, entry: QueuedPod) -> None:
        """Put an entry into its sub-queue."""
        entry.stamp += 1
        self.counts[entry.subqueue] += 1
        match entry.subqueue:
            case SubQueue.ACTIVE:
                entry.signature = self._signature(entry.pod)
                self._active.push(entry)
            case SubQueue.HELD:
                entry.signature = self._signature(entry.pod)
                self.arrived.append(entry)
            case SubQueue.BACKOFF:
                self._resting.push(entry)
                if not entry.failures:
                    self._refused.push(entry)
            case SubQueue.UNSCHEDULABLE:
                entry.signature = self._signature(entry.pod)
                self._waiting.push(entry)
                groups = self._groups.setdefault(entry.plugins, {})
                groups.setdefault(entry.group, {})[entry.uid] = entry
                entry.marks = self._marks(entry.pod)
                for mark in entry.marks:
                    self._marked.setdefault(mark, {})[entry.uid] = entry
            case _:
                pass

    def leave(self, entry: QueuedPod) -> None:
        """Take an entry from its sub-queue; call this before it changes."""
        self.counts[entry.subqueue] -= 1
        match entry.subqueue:
            case SubQueue.ACTIVE:
                self._active.left()
            case SubQueue.BACKOFF:
                self._resting.left()
                if not entry.failures:
                    self._refused.left()
            case SubQueue.UNSCHEDULABLE:
                self._waiting.left()
                self._leave_group(entry)
            case _:
                pass

    def _leave_group(self, entry: QueuedPod) -> None:
        groups = self._groups[entry.plugins]
        group = groups[entry.group]
        del group[entry.uid]
        if not group:
            del groups[entry.group]
        if not groups:
            del self._groups[entry.plugins]
        for mark in entry.marks:
            del self._marked[mark][entry.uid]
            if not self._marked[mark]:
                del self._marked[mark]
