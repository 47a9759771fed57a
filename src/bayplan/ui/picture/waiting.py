"""The quay: pods that wait, those alike together, each with the true cause of its waiting.

Which pods are alike is kept as they come and go. Causes are asked for off the path of changes: one
likeness at a time, for as long as whoever asks has time, and again only after something changed on
which a cause may rest: that a node or a pod says again how it is does not count.
A row of the page is all pods of one owner (or of none) that ask for the same and wait for the same
cause, so that its id stays the same while pods of it come and go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from hashlib import blake2b
from heapq import nsmallest

import msgspec

from bayplan.fit import Snapshot
from bayplan.fit.explanation.cause import Waiting as Why
from bayplan.fit.explanation.cause import why_it_waits
from bayplan.fit.explanation.waiting import likeness
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod
from bayplan.ui import texts
from bayplan.ui.picture.pods import owner_of
from bayplan.ui.tables import Row, Tables

MOST_PODS = 200
"""So many pods of a row are named; the others are counted."""
NOT_YET = Why(Cause.OTHER, "why is not known yet")
_encode = msgspec.msgpack.Encoder().encode


class Alike:
    """Pods of one likeness, all of them held back by the same word of a queue or by none."""

    __slots__ = ("asked", "base", "held", "pods", "why")

    def __init__(self, base: bytes, held: str | None) -> None:
        self.base = base
        self.held = held
        self.pods: dict[str, Pod] = {}
        self.why = NOT_YET
        self.asked = -1
        """Of which cluster the cause was last asked for."""


class Waiting:
    """All pods that wait for a node."""

    def __init__(self, snapshot: Snapshot, tables: Tables) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._alike: dict[Hashable, Alike] = {}
        self._of: dict[str, Hashable] = {}
        self._rows: defaultdict[str, dict[Hashable, Alike]] = defaultdict(dict)
        """By the id of a row the likenesses in it."""
        self._dirty: set[str] = set()
        self._stirred = 0
        self.held: Mapping[str, str] = {}
        """By pod what its queue says, where that holds it back."""

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, key: str) -> bool:
        return key in self._of

    def keys(self) -> list[str]:
        """The pods that wait."""
        return list(self._of)

    def put(self, record: PodRecord) -> None:
        """A pod waits, or waits otherwise than it did."""
        held = self.held.get(record.key)
        key = (likeness(self._snapshot, record.pod), _base(record), held)
        if self._of.get(record.key) != key:
            self.drop(record.key)
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = Alike(_base(record), held)
            self._enter(key, alike)
        self._of[record.key] = key
        alike.pods[record.key] = record.pod
        self._dirty.add(_row_id(alike))

    def drop(self, pod: str) -> None:
        """A pod waits no more."""
        key = self._of.pop(pod, None)
        if key is None:
            return
        alike = self._alike[key]
        del alike.pods[pod]
        self._dirty.add(_row_id(alike))
        if not alike.pods:
            del self._alike[key]
            self._leave(key, alike)

    def stir(self) -> None:
        """Something has changed that causes may rest on, besides nodes and what is used of them."""
        self._stirred += 1

    def ask_one(self) -> bool:
        """Ask for the cause of one likeness; False if all are known."""
        version = self._version()
        for key, alike in self._alike.items():
            if alike.asked != version:
                self._ask(key, alike)
                self._stirred -= self._version() - version  # trying pods out is no change
                alike.asked = version
                return True
        return False

    def _version(self) -> int:
        """Moves with nodes, with what is used of them, and with all else that causes rest on."""
        cluster = self._snapshot.cluster
        return cluster.node_changes.end + cluster.usage_changes.end + self._stirred

    def write(self) -> None:
        """Write the rows of what changed."""
        for name in self._dirty:
            there = self._rows.get(name)
            if there:
                self._tables.set("waiting", _row(name, list(there.values())))
            else:
                self._rows.pop(name, None)
                self._tables.drop("waiting", name)
        self._dirty.clear()

    def _ask(self, key: Hashable, alike: Alike) -> None:
        # To the back: whoever was asked longest ago comes next.
        self._alike[key] = self._alike.pop(key)
        sample = min(alike.pods)
        why = why_it_waits(self._snapshot, alike.pods[sample], alike.held)
        if why != alike.why:
            self._leave(key, alike)
            alike.why = why
            self._enter(key, alike)

    def _enter(self, key: Hashable, alike: Alike) -> None:
        name = _row_id(alike)
        self._rows[name][key] = alike
        self._dirty.add(name)

    def _leave(self, key: Hashable, alike: Alike) -> None:
        name = _row_id(alike)
        del self._rows[name][key]
        self._dirty.add(name)


def _base(record: PodRecord) -> bytes:
    """What of a pod is told on the page: whose it is, and what it asks for."""
    pod, signature = record.pod, record.signature
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    asks = sorted(signature.requests.items())
    told = (pod.namespace, owner_of(pod), asks, len(record.volumes), gates, pod.spec.scheduler_name)
    return _encode(told)


def _row_id(alike: Alike) -> str:
    why = alike.why
    told = _encode((alike.base, why.cause.value, why.drivers))
    return blake2b(told, digest_size=12).hexdigest()


def _row(name: str, found: list[Alike]) -> Row:
    """Pods of one owner, with one cause."""
    first = min(found, key=lambda one: min(one.pods))
    sample, count = min(first.pods), sum(len(one.pods) for one in found)
    named = nsmallest(MOST_PODS, (key for one in found for key in one.pods))
    since = min(
        (pod.metadata.creation_timestamp or "" for one in found for pod in one.pods.values()),
        default="",
    )
    why = first.why
    return [
        name,
        why.cause.value,
        texts.name(", ".join(why.drivers)),
        owner_of(first.pods[sample]) or texts.name(sample),
        [texts.identity(key) for key in named],
        count,
        texts.name(since),
        texts.line(why.text),
        texts.identity(sample),
    ]
