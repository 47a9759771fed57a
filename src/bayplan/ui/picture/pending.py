"""Pending pods by equivalence class, each with the cause for which it is pending.

Equivalence classes are updated as pods come and go. Causes are computed outside the handling of
changes: one class at a time, as long as there is time, and again only after a change that may
affect a cause; an unchanged status of a node or a pod does not count. A row of the page has all
pods of one owner (or of none) with the same requests and the same cause, so that its id stays the
same while its pods come and go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from hashlib import blake2b
from heapq import nsmallest

import msgspec

from bayplan.fit import Snapshot
from bayplan.fit.explanation.cause import WaitReason, equivalence_key, wait_reason
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod
from bayplan.ui import texts
from bayplan.ui.picture.pods import owner_of
from bayplan.ui.tables import Row, Tables

MAX_PODS = 200
"""Maximum number of pods of a row that are listed; the others are counted."""
NOT_YET = WaitReason(Cause.OTHER, "the cause is not known yet")
_encode = msgspec.msgpack.Encoder().encode


class PendingPodClass:
    """Pods of one equivalence class, with the same reason of a queue or none."""

    __slots__ = ("base", "computed_for", "held", "pods", "reason")

    def __init__(self, base: bytes, held: str | None) -> None:
        self.base = base
        self.held = held
        self.pods: dict[str, Pod] = {}
        self.reason = NOT_YET
        self.computed_for = -1
        """The version of the cluster for which the cause was computed."""


class PendingPodsTable:
    """All pending pods."""

    def __init__(self, snapshot: Snapshot, tables: Tables) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._classes: dict[Hashable, PendingPodClass] = {}
        self._of: dict[str, Hashable] = {}
        self._rows: defaultdict[str, dict[Hashable, PendingPodClass]] = defaultdict(dict)
        """By the id of a row, its equivalence classes."""
        self._dirty: set[str] = set()
        self._other_changes = 0
        self.held: Mapping[str, str] = {}
        """By pod, the reason of its queue if it is not admitted."""

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, key: str) -> bool:
        return key in self._of

    def keys(self) -> list[str]:
        """Return the pending pods."""
        return list(self._of)

    def put(self, record: PodRecord) -> None:
        """Add or update a pending pod."""
        held = self.held.get(record.key)
        key = (equivalence_key(self._snapshot, record.pod), _base(record), held)
        if self._of.get(record.key) != key:
            self.drop(record.key)
        pod_class = self._classes.get(key)
        if pod_class is None:
            pod_class = self._classes[key] = PendingPodClass(_base(record), held)
            self._enter(key, pod_class)
        self._of[record.key] = key
        pod_class.pods[record.key] = record.pod
        self._dirty.add(_row_id(pod_class))

    def drop(self, pod: str) -> None:
        """Remove a pod that is no longer pending."""
        key = self._of.pop(pod, None)
        if key is None:
            return
        pod_class = self._classes[key]
        del pod_class.pods[pod]
        self._dirty.add(_row_id(pod_class))
        if not pod_class.pods:
            del self._classes[key]
            self._leave(key, pod_class)

    def mark_changed(self) -> None:
        """Mark a change that may affect causes, other than of nodes and their usage."""
        self._other_changes += 1

    def compute_one(self) -> bool:
        """Compute the cause of one equivalence class; return False if all are known."""
        version = self._version()
        for key, pod_class in self._classes.items():
            if pod_class.computed_for != version:
                self._compute(key, pod_class)
                self._other_changes -= (
                    self._version() - version
                )  # the evaluation itself is no change
                pod_class.computed_for = version
                return True
        return False

    def _version(self) -> int:
        """Return a number that changes with everything that may affect causes."""
        cluster = self._snapshot.cluster
        return cluster.node_changes.end + cluster.usage_changes.end + self._other_changes

    def write(self) -> None:
        """Write the rows that have changed."""
        for name in self._dirty:
            there = self._rows.get(name)
            if there:
                self._tables.set("waiting", _row(name, list(there.values())))
            else:
                self._rows.pop(name, None)
                self._tables.drop("waiting", name)
        self._dirty.clear()

    def _compute(self, key: Hashable, pod_class: PendingPodClass) -> None:
        # Move it to the back: the class computed longest ago comes next.
        self._classes[key] = self._classes.pop(key)
        sample = min(pod_class.pods)
        reason = wait_reason(self._snapshot, pod_class.pods[sample], pod_class.held)
        if reason != pod_class.reason:
            self._leave(key, pod_class)
            pod_class.reason = reason
            self._enter(key, pod_class)

    def _enter(self, key: Hashable, pod_class: PendingPodClass) -> None:
        name = _row_id(pod_class)
        self._rows[name][key] = pod_class
        self._dirty.add(name)

    def _leave(self, key: Hashable, pod_class: PendingPodClass) -> None:
        name = _row_id(pod_class)
        del self._rows[name][key]
        self._dirty.add(name)


def _base(record: PodRecord) -> bytes:
    """Return the part of a pod that the page shows: its owner and its requests."""
    pod, signature = record.pod, record.signature
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    requests = sorted(signature.requests.items())
    shown = (
        pod.namespace,
        owner_of(pod),
        requests,
        len(record.volumes),
        gates,
        pod.spec.scheduler_name,
    )
    return _encode(shown)


def _row_id(pod_class: PendingPodClass) -> str:
    reason = pod_class.reason
    key = _encode((pod_class.base, reason.cause.value, reason.drivers))
    return blake2b(key, digest_size=12).hexdigest()


def _row(name: str, found: list[PendingPodClass]) -> Row:
    """Return the row of pods of one owner with one cause."""
    first = min(found, key=lambda one: min(one.pods))
    sample, count = min(first.pods), sum(len(one.pods) for one in found)
    named = nsmallest(MAX_PODS, (key for one in found for key in one.pods))
    since = min(
        (pod.metadata.creation_timestamp or "" for one in found for pod in one.pods.values()),
        default="",
    )
    reason = first.reason
    return [
        name,
        reason.cause.value,
        texts.name(", ".join(reason.drivers)),
        owner_of(first.pods[sample]) or texts.name(sample),
        [texts.identity(key) for key in named],
        count,
        texts.name(since),
        texts.line(reason.text),
        texts.identity(sample),
    ]
