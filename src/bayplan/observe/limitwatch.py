"""Problems of attach limits: values that cannot be read, and nodes over their limits.

Neither stops scheduling. A value that cannot be read is ignored; where a limit was lowered below
the attachments in use, pods stay on the node, and no pods with further volumes are placed there.
Each problem is reported once when it begins, and by metrics for as long as it lasts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.attachlimits import invalid_attach_limits
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.observe.observer import Observer

V = TypeVar("V")
UNREADABLE = "UnreadableAttachLimit"
OVER = "VolumeLimitExceeded"
ReportProblem = Callable[[Node, str, str], None]
"""Called with the node, the reason, and the message."""


class LimitWatch:
    """Watches the attach limits of a snapshot's nodes."""

    def __init__(self, snapshot: Snapshot, report: ReportProblem) -> None:
        self._cluster = snapshot.cluster
        self._report = report
        self._unreadable: dict[str, dict[str, str]] = {}
        """By node, the keys and values that cannot be read as limits."""
        self._over: dict[str, dict[str, int]] = {}
        """By node, the drivers with more attachments than their limits, and the limits."""

    def start(self, observer: Observer) -> None:
        """Check every node, then every change; called once the snapshot is filled."""
        observer.listen(self.on_event)
        for name in sorted(self._cluster.slots.by_name):
            self._check_node(name)

    def on_event(self, event: ClusterEvent) -> None:
        """Check the node of a change that the snapshot has."""
        if event.kind is CSINode or (event.kind is Node and _matters(event)):
            self._check_node(event.key)

    def unreadable(self) -> Mapping[str, float]:
        """Count the nodes with a value that cannot be read as a limit, by key."""
        return Counter(key for keys in self._unreadable.values() for key in keys)

    def over(self) -> Mapping[str, float]:
        """Count the volumes beyond their nodes' limits now, by driver."""
        volumes, found = self._cluster.attached_volumes, {}
        for driver in volumes.drivers():
            used, limits = volumes.columns(driver).used, volumes.limits(driver, self._cluster.rules)
            many = int((used - limits).clip(min=0).sum())
            if many:
                found[driver] = float(many)
        return found

    def _check_node(self, name: str) -> None:
        slot = self._cluster.slots.by_name.get(name)
        if slot is None:
            self._unreadable.pop(name, None)
            self._over.pop(name, None)
            return
        node = self._cluster.node_at(slot)
        self._check_unreadable(node)
        self._check_over_limit(node, slot)

    def _check_unreadable(self, node: Node) -> None:
        reads = self._cluster.rules.published_limits
        found = invalid_attach_limits(node.status.allocatable) if reads else {}
        wrong = {key: str(amount) for key, amount in found.items()}
        before = _replace(self._unreadable, node.name, wrong)
        for key, amount in wrong.items():
            if before.get(key) != amount:
                text = f"{key}: {amount!r} is not a valid attach limit, and is ignored"
                self._report(node, UNREADABLE, text)

    def _check_over_limit(self, node: Node, slot: int) -> None:
        volumes, over, used_by = self._cluster.attached_volumes, {}, {}
        for driver in volumes.drivers():
            used = int(volumes.columns(driver).used[slot])
            limit = int(volumes.limits(driver, self._cluster.rules)[slot])
            if used > limit:
                over[driver], used_by[driver] = limit, used
        before = _replace(self._over, node.name, over)
        for driver, limit in over.items():
            if before.get(driver) != limit:
                text = f"{used_by[driver]} volumes of {driver} are attached, over the limit {limit}"
                self._report(node, OVER, f"{text}; running pods stay, no new ones with volumes")


def _replace(known: dict[str, dict[str, V]], name: str, found: dict[str, V]) -> dict[str, V]:
    """Store the findings about a node; return the previous ones."""
    before = known.pop(name, {})
    if found:
        known[name] = found
    return before


def _matters(event: ClusterEvent) -> bool:
    before, after = event.before, event.after
    if not (isinstance(before, Node) and isinstance(after, Node)):
        return True
    changed = before.status.allocatable != after.status.allocatable
    return changed or before.metadata.labels != after.metadata.labels


class LimitCollector(Collector):
    """The metrics of a LimitWatch, read at every scrape."""

    def __init__(self, prefix: str, watch: Callable[[], LimitWatch | None]) -> None:
        self._prefix = prefix
        self._watch = watch

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics by key and by driver."""
        watch = self._watch()
        for name, text, label, read in (
            ("unreadable_attach_limits", "Nodes with an attach limit that cannot be read, by key.",
             "key", LimitWatch.unreadable),
            ("volumes_over_limit", "Volumes attached to nodes beyond their drivers' limits.",
             "driver", LimitWatch.over),
        ):  # fmt: skip
            family = GaugeMetricFamily(f"{self._prefix}_{name}", text, labels=[label])
            for value, amount in sorted((read(watch) if watch is not None else {}).items()):
                family.add_metric([value], amount)
            yield family
