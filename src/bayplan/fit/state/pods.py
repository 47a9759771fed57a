"""Pods of a snapshot: where each one is, which claims it uses, and which pods are nominated.

A pod that has no node yet is nominated by its status, or by what a scheduler has decided and not
yet seen in a status. A pod that is placed, even if only assumed to be, is not nominated.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from bayplan.fit.indexes import NameIndex
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import ClassKey, PodMatch, class_key
from bayplan.fit.state.node_usage import InlineDisk
from bayplan.fit.state.topology import DomainCounts, SlotCounts
from bayplan.fit.volumes.identity import VolumeIdentity
from bayplan.kube.meta import Labels
from bayplan.kube.pods import Pod

NO_SLOT = -1


class PodRecord:
    """A pod, its signature, and the node it is (or is assumed to be) on."""

    __slots__ = (
        "claims",
        "disks",
        "inline",
        "key",
        "labels",
        "node",
        "pod",
        "pod_class",
        "preemption_info",
        "signature",
        "slot",
        "terminating",
        "volumes",
    )

    def __init__(
        self, pod: Pod, key: str, signature: PodSignature, labels: Labels, node: str
    ) -> None:
        self.pod = pod
        """The object as it was put; what is counted rests on what was read of it then, below."""
        self.key = key
        self.labels = labels
        self.terminating = pod.is_terminating
        self.signature = signature
        self.node = node
        self.slot = NO_SLOT
        """The slot it is counted on; NO_SLOT while its node is unknown or it has none."""
        self.pod_class: PodClass | None = None
        """What it is counted as."""
        self.claims: tuple[str, ...] = ()
        """The keys of the claims that it names."""
        self.inline: tuple[VolumeIdentity, ...] = ()
        """The volumes that it names without a claim."""
        self.volumes: tuple[VolumeIdentity, ...] = ()
        """All of them, as its claims now stand."""
        self.disks: tuple[InlineDisk, ...] = ()
        self.preemption_info: object = None
        """What preemption has worked out for the pod, to be kept with it."""

    @property
    def class_key(self) -> ClassKey:
        """How counters see it: pods of one key are one to all that are counted."""
        if self.pod_class is not None:
            return self.pod_class.key
        return class_key(self.signature.namespace, self.labels, terminating=self.terminating)


Counts = DomainCounts | SlotCounts


class PodClass:
    """Pods that no counter can tell apart, and the nodes they are on."""

    __slots__ = ("counters", "key", "labels", "records", "seen", "slots")

    def __init__(self, key: ClassKey, labels: Labels) -> None:
        self.key = key
        self.labels = dict(labels)
        self.slots: dict[int, int] = {}
        self.counters: list[PodCounter] = []
        self.records: set[PodRecord] = set()
        self.seen: set[str] = set()
        """Labels that its pods have, read by counters or not."""


class PodCounter:
    """A count of pods of one kind, by domain or by node, kept up to date."""

    __slots__ = ("counts", "key", "match")

    def __init__(self, key: Hashable, match: PodMatch, counts: Counts) -> None:
        self.key = key
        self.match = match
        self.counts = counts


def placed_on(pod: Pod, node: str) -> Pod:
    """The pod as an object on a node, or (empty) on none."""
    if pod.spec.node_name == node:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=node))


def placed_pod(record: PodRecord) -> Pod:
    """The pod as an object, on the node it is or is assumed to be on."""
    return record.pod if record.pod.is_terminal else placed_on(record.pod, record.node)


def node_of(pod: Pod) -> str:
    """Return the node on which a pod counts; empty if it has none or has ended."""
    return "" if pod.is_terminal else pod.spec.node_name


class Pods:
    """All pods, by name, by node and by claim."""

    def __init__(self) -> None:
        self.by_key: dict[str, PodRecord] = {}
        self.by_node: dict[str, dict[str, PodRecord]] = {}
        self.by_claim = NameIndex()

    def add_to_node(self, key: str, record: PodRecord) -> None:
        """The pod is on its node from now on."""
        self.by_node.setdefault(record.node, {})[key] = record

    def reorder(self, node: str, records: list[PodRecord]) -> None:
        """The pods of a node, all of them, are in this order from now on."""
        if records:
            self.by_node[node] = {record.key: record for record in records}

    def remove_from_node(self, key: str, record: PodRecord) -> None:
        """The pod is no longer on its node."""
        there = self.by_node[record.node]
        del there[key]
        if not there:
            del self.by_node[record.node]


class Nominations:
    """Nominated pods, by the node they are nominated for."""

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, PodRecord]] = {}
        self.by_scheduler: dict[str, str] = {}
        """By pod, the node (or none) that counts until its status has a new nomination."""
        self.version = 0
        """Moves with every nomination that comes or goes."""
        self.kept: tuple[object, object] | None = None
        """What a reader has worked out of them, and what that rests on."""
        self.ranked_by_class = 0
        """How many have only a class's priority, which can change without them."""
        self._nodes: dict[str, tuple[str, bool]] = {}

    def holds(self, key: str) -> bool:
        """Whether a node is kept for a pod."""
        return key in self._nodes

    def node_of(self, pod: Pod) -> str:
        """The node that a pod without one is nominated for, or empty."""
        decided = self.by_scheduler.get(pod.key) if self.by_scheduler else None
        return pod.status.nominated_node_name if decided is None else decided

    def with_nomination(self, pod: Pod) -> Pod:
        """Return the pod with the nomination that counts in its status."""
        node = self.node_of(pod)
        if node == pod.status.nominated_node_name:
            return pod
        return replace(pod, status=replace(pod.status, nominated_node_name=node))

    def add(self, record: PodRecord) -> None:
        """Keep a node for a pod, if it has none and is nominated for one."""
        pod = record.pod
        if record.node or pod.is_terminal:
            return
        node = self.node_of(pod)
        if node:
            by_class = pod.spec.priority is None
            self._nodes[record.key] = (node, by_class)
            self.by_node.setdefault(node, {})[record.key] = record
            self.ranked_by_class += by_class
            self.version += 1

    def discard(self, record: PodRecord) -> None:
        """Keep a node for a pod no longer, if one was kept."""
        if record.key not in self._nodes:
            return
        node, by_class = self._nodes.pop(record.key)
        there = self.by_node[node]
        del there[record.key]
        if not there:
            del self.by_node[node]
        self.ranked_by_class -= by_class
        self.version += 1


def is_new_nomination(before: Pod, after: Pod) -> bool:
    """Whether a pod's status has a new nomination, which replaces ours.

    A status without a nomination before and after may only be late.
    """
    spoken = before.status.nominated_node_name or after.status.nominated_node_name
    return bool(spoken) or before.metadata.uid != after.metadata.uid
