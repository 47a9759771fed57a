"""How many pods of a kind there are, and where: pods by class, a class by what selectors see.

A class is a namespace, the labels that some counter reads there, and whether the pods are
terminating; there are far fewer classes than pods. A counter (of pods that match a selector, by
topology domain or by node) is matched against a class once; after that, placing a pod adds one to
the counters of its class and looks at no selector at all. When a counter comes that reads a label
which none read before, the classes whose pods have that label are divided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from bayplan.fit.indexes import SelectorIndex, required_label
from bayplan.fit.profile import CacheLimits
from bayplan.fit.signatures.reads import LabelReads
from bayplan.fit.signatures.terms import ClassKey, Namespaces, PodMatch, class_key
from bayplan.fit.state.pods import Counts, PodClass, PodCounter, PodRecord
from bayplan.fit.state.topology import SlotCounts
from bayplan.kube.meta import Labels


class PodCounts:
    """All classes and all counters."""

    def __init__(self, namespaces: Namespaces, limits: CacheLimits) -> None:
        self._most_counters = limits.counters
        self._namespaces = namespaces
        self._classes: dict[str, dict[ClassKey, PodClass]] = {}
        """By namespace."""
        self._by_label: SelectorIndex[PodClass] = SelectorIndex()
        """By each of the labels that distinguish them."""
        self._counters: dict[Hashable, PodCounter] = {}
        self._hooked: SelectorIndex[PodCounter] = SelectorIndex()
        self._reads = LabelReads(self._divide)

    def add(self, record: PodRecord, slot: int) -> None:
        """A pod is on this slot's node."""
        pods = record.pod_class = self._class_of(record)
        pods.records.add(record)
        pods.slots[slot] = pods.slots.get(slot, 0) + 1
        for counter in pods.counters:
            counter.counts.add(slot, 1)

    def remove(self, record: PodRecord, slot: int) -> None:
        """A pod is no longer there."""
        pods = record.pod_class
        if pods is None:
            raise LookupError(f"{record.key} is not counted")
        record.pod_class = None
        pods.records.remove(record)
        left = pods.slots[slot] - 1
        if left:
            pods.slots[slot] = left
        else:
            del pods.slots[slot]
            if not pods.slots:
                self._drop(pods)
        for counter in pods.counters:
            counter.counts.add(slot, -1)

    def counter(self, key: Hashable, match: PodMatch, make: Callable[[], Counts]) -> Counts:
        """The counts of pods that match; every class is matched the first time."""
        counter = self._counters.get(key)
        if counter is None:
            for term in match.terms:
                self._reads.add_term(term)
            counter = PodCounter(key, match, make())
            self._counters[key] = counter
            self._hooked.add(required_label(term.selector for term in match.terms), counter)
            for pods in self._concerned(match):
                self._enlist(counter, pods)
        return counter.counts

    @property
    def is_crowded(self) -> bool:
        """Whether there are more counters than are likely to be needed."""
        return len(self._counters) > self._most_counters

    def forget_counters(self) -> None:
        """Drop every counter; those still needed are created again."""
        self._counters.clear()
        self._hooked.clear()
        self._reads.clear()
        for classes in self._classes.values():
            for pods in classes.values():
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
        if readers:
            for pods in self._classes.get(name, {}).values():
                self._reask(pods, readers)

    def _reask(self, pods: PodClass, readers: list[PodCounter]) -> None:
        for counter in readers:
            if counter in pods.counters:
                pods.counters.remove(counter)
                self._tally(counter, pods, -1)
            self._enlist(counter, pods)

    def _class_of(self, record: PodRecord) -> PodClass:
        namespace, labels = record.signature.namespace, record.labels
        read = self._reads.read_labels(namespace, labels)
        terminating = record.terminating
        key = (
            class_key(namespace, read, terminating=terminating)
            if read
            else (namespace, (), terminating)
        )
        classes = self._classes.get(namespace)
        if classes is None:
            classes = self._classes[namespace] = {}
        pods = classes.get(key)
        if pods is None:
            pods = classes[key] = self._new_class(key, read)
        if not labels.keys() <= pods.seen:
            pods.seen.update(labels)
        return pods

    def _new_class(self, key: ClassKey, labels: Labels) -> PodClass:
        pods = PodClass(key, labels)
        for hook in pods.labels.items():
            self._by_label.add(hook, pods)
        for counter in self._hooked.for_labels(labels):
            self._enlist(counter, pods)
        return pods

    def _drop(self, pods: PodClass) -> None:
        classes = self._classes[pods.key[0]]
        del classes[pods.key]
        for hook in pods.labels.items():
            self._by_label.discard(hook, pods)
        if not classes:
            del self._classes[pods.key[0]]

    def _divide(self, namespace: str | None, keys: frozenset[str]) -> None:
        """Tell pods apart by labels that are read from now on."""
        names = list(self._classes) if namespace is None else [namespace]
        for name in names:
            for pods in list(self._classes.get(name, {}).values()):
                if not keys.isdisjoint(pods.seen):
                    self._move_out(pods, keys)

    def _move_out(self, pods: PodClass, keys: frozenset[str]) -> None:
        for record in list(pods.records):
            if not keys.isdisjoint(record.labels):
                slot = record.slot
                self.remove(record, slot)
                self.add(record, slot)

    def _concerned(self, match: PodMatch) -> Iterator[PodClass]:
        """The classes that a counter may speak of, by a label or by their namespaces."""
        hook = required_label(term.selector for term in match.terms)
        if hook is not None:
            yield from self._by_label.on(hook)
            return
        names: Iterable[str] = self._classes
        if not match.reads_namespaces:
            names = frozenset.intersection(*(term.namespaces for term in match.terms))
        for name in names:
            yield from self._classes.get(name, {}).values()

    def _enlist(self, counter: PodCounter, pods: PodClass) -> None:
        namespace, _, terminating = pods.key
        if counter.match.picks(namespace, pods.labels, self._namespaces, terminating=terminating):
            pods.counters.append(counter)
            self._tally(counter, pods, 1)

    def _tally(self, counter: PodCounter, pods: PodClass, sign: int) -> None:
        for slot, count in pods.slots.items():
            counter.counts.add(slot, sign * count)
