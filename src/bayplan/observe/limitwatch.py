"""What is wrong with volume limits: amounts that cannot be any, and nodes over their limits.

Neither stops anybody. An amount that cannot be a limit is passed over; where a limit was lowered
below what is attached, pods stay where they are, and no further ones come. Whoever runs the cluster
is told once for each time that it comes to this, and by metrics for as long as it lasts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.fit import Snapshot
from bayplan.fit.events import Event
from bayplan.kube.attachlimits import unreadable_limits
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.observe.observer import Observer

V = TypeVar("V")
UNREADABLE = "UnreadableAttachLimit"
OVER = "VolumeLimitExceeded"
Tell = Callable[[Node, str, str], None]
"""Of which node, the reason, and the text."""


class LimitWatch:
    """Follows the nodes of a snapshot."""

    def __init__(self, snapshot: Snapshot, tell: Tell) -> None:
        self._cluster = snapshot.cluster
        self._tell = tell
        self._wrong: dict[str, dict[str, str]] = {}
        """By node, the keys and amounts that cannot be limits."""
        self._over: dict[str, dict[str, int]] = {}
        """By node, the drivers with more volumes than they may have, and the limits."""

    def start(self, observer: Observer) -> None:
        """Look at every node, and follow what changes from now on; once the snapshot is filled."""
        observer.listen(self.hear)
        for name in sorted(self._cluster.slots.by_name):
            self._look(name)

    def hear(self, event: Event) -> None:
        """Something has changed, and the snapshot shows it."""
        if event.kind is CSINode or (event.kind is Node and _matters(event)):
            self._look(event.key)

    def unreadable(self) -> Mapping[str, float]:
        """How many nodes have an amount under a key that cannot be a limit, by key."""
        return Counter(key for keys in self._wrong.values() for key in keys)

    def over(self) -> Mapping[str, float]:
        """How many volumes there are over their nodes' limits now, by driver."""
        places, found = self._cluster.attached_volumes, {}
        for driver in places.drivers():
            used, limits = places.columns(driver).used, places.limits(driver, self._cluster.rules)
            many = int((used - limits).clip(min=0).sum())
            if many:
                found[driver] = float(many)
        return found

    def _look(self, name: str) -> None:
        slot = self._cluster.slots.by_name.get(name)
        if slot is None:
            self._wrong.pop(name, None)
            self._over.pop(name, None)
            return
        node = self._cluster.node_at(slot)
        self._look_for_wrong(node)
        self._look_for_too_many(node, slot)

    def _look_for_wrong(self, node: Node) -> None:
        reads = self._cluster.rules.published_limits
        found = unreadable_limits(node.status.allocatable) if reads else {}
        wrong = {key: str(amount) for key, amount in found.items()}
        before = _replace(self._wrong, node.name, wrong)
        for key, amount in wrong.items():
            if before.get(key) != amount:
                text = f"{key}: {amount!r} cannot be a limit of volumes, and is passed over"
                self._tell(node, UNREADABLE, text)

    def _look_for_too_many(self, node: Node, slot: int) -> None:
        places, over, used_by = self._cluster.attached_volumes, {}, {}
        for driver in places.drivers():
            used = int(places.columns(driver).used[slot])
            limit = int(places.limits(driver, self._cluster.rules)[slot])
            if used > limit:
                over[driver], used_by[driver] = limit, used
        before = _replace(self._over, node.name, over)
        for driver, limit in over.items():
            if before.get(driver) != limit:
                text = f"{used_by[driver]} volumes of {driver} are here, and the limit is {limit}"
                self._tell(node, OVER, f"{text}; pods stay, and no more volumes come")


def _replace(book: dict[str, dict[str, V]], name: str, found: dict[str, V]) -> dict[str, V]:
    """Keep what was found of a node; gives what was known before."""
    before = book.pop(name, {})
    if found:
        book[name] = found
    return before


def _matters(event: Event) -> bool:
    before, after = event.before, event.after
    if not (isinstance(before, Node) and isinstance(after, Node)):
        return True
    changed = before.status.allocatable != after.status.allocatable
    return changed or before.metadata.labels != after.metadata.labels


class LimitCollector(Collector):
    """The metrics, read when somebody asks."""

    def __init__(self, prefix: str, watch: Callable[[], LimitWatch | None]) -> None:
        self._prefix = prefix
        self._watch = watch

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """By key, and by driver."""
        watch = self._watch()
        for name, text, label, read in (
            ("unreadable_attach_limits", "Nodes whose amount under a key cannot be a limit.",
             "key", LimitWatch.unreadable),
            ("volumes_over_limit", "Volumes on nodes beyond the limits of their drivers.",
             "driver", LimitWatch.over),
        ):  # fmt: skip
            family = GaugeMetricFamily(f"{self._prefix}_{name}", text, labels=[label])
            for value, amount in sorted((read(watch) if watch is not None else {}).items()):
                family.add_metric([value], amount)
            yield family
