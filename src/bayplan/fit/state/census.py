"""Who is where, by kind: pods grouped by namespace, labels and whether they are terminating.

Replicas share their labels, so there are far fewer classes than pods. A counter (of pods that match
a selector, by topology domain or by node) is matched against a class once; after that, placing a
pod adds one to the counters of its class and looks at no selector at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from bayplan.fit.shapes.matching import ClassKey, Namespaces, PodMatch
from bayplan.fit.state.domains import DomainCounts, SlotCounts

Counts = DomainCounts | SlotCounts


MOST_COUNTERS = 5000


class PodClass:
    """Pods that no selector can tell apart, and the nodes they are on."""

    __slots__ = ("counters", "key", "labels", "slots")

    def __init__(self, key: ClassKey, labels: Mapping[str, str]) -> None:
        self.key = key
        self.labels = labels
        self.slots: dict[int, int] = {}
        self.counters: list[Counter] = []


class Counter:
    """A standing question: how many pods of this kind, where."""

    __slots__ = ("counts", "key", "match")

    def __init__(self, key: Hashable, match: PodMatch, counts: Counts) -> None:
        self.key = key
        self.match = match
        self.counts = counts


class Census:
    """All classes and all counters."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._classes: dict[ClassKey, PodClass] = {}
        self._counters: dict[Hashable, Counter] = {}

    def add(self, key: ClassKey, labels: Mapping[str, str], slot: int) -> None:
        """A pod of this class is on this slot's node."""
        pods = self._classes.get(key)
        if pods is None:
            pods = self._new_class(key, labels)
        pods.slots[slot] = pods.slots.get(slot, 0) + 1
        for counter in pods.counters:
            counter.counts.add(slot, 1)

    def remove(self, key: ClassKey, slot: int) -> None:
        """A pod of this class is no longer there."""
        pods = self._classes[key]
        left = pods.slots[slot] - 1
        if left:
            pods.slots[slot] = left
        else:
            del pods.slots[slot]
            if not pods.slots:
                del self._classes[key]
        for counter in pods.counters:
            counter.counts.add(slot, -1)

    def counter(self, key: Hashable, match: PodMatch, make: Callable[[], Counts]) -> Counts:
        """The counts of a standing question; it is asked of every class the first time."""
        counter = self._counters.get(key)
        if counter is None:
            counter = Counter(key, match, make())
            self._counters[key] = counter
            for pods in self._classes.values():
                self._enlist(counter, pods)
        return counter.counts

    @property
    def is_crowded(self) -> bool:
        """Whether there are more counters than are likely to be needed."""
        return len(self._counters) > MOST_COUNTERS

    def forget_counters(self) -> None:
        """Drop every counter; those still needed are asked for again."""
        self._counters.clear()
        for pods in self._classes.values():
            pods.counters.clear()

    def joined(self, slot: int, delta: int) -> None:
        """A node came to (+1) or leaves (-1) a slot, without its pods."""
        for counter in self._counters.values():
            counter.counts.join(slot, delta)

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        for counter in self._counters.values():
            if isinstance(counter.counts, SlotCounts):
                counter.counts.grow(capacity)

    def namespace_changed(self, name: str) -> None:
        """A namespace's labels changed: ask those counters again that read them."""
        readers = [c for c in self._counters.values() if c.match.reads_namespaces]
        for pods in self._classes.values():
            if readers and pods.key[0] == name:
                self._reask(pods, readers)

    def _reask(self, pods: PodClass, readers: list[Counter]) -> None:
        for counter in readers:
            if counter in pods.counters:
                pods.counters.remove(counter)
                self._tally(counter, pods, -1)
            self._enlist(counter, pods)

    def _new_class(self, key: ClassKey, labels: Mapping[str, str]) -> PodClass:
        pods = PodClass(key, labels)
        self._classes[key] = pods
        for counter in self._counters.values():
            self._enlist(counter, pods)
        return pods

    def _enlist(self, counter: Counter, pods: PodClass) -> None:
        namespace, _, terminating = pods.key
        if counter.match.picks(namespace, pods.labels, self._namespaces, terminating=terminating):
            pods.counters.append(counter)
            self._tally(counter, pods, 1)

    def _tally(self, counter: Counter, pods: PodClass, sign: int) -> None:
        for slot, count in pods.slots.items():
            counter.counts.add(slot, sign * count)
