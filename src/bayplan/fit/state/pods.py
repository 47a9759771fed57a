"""Pods of a snapshot: where each one is, and who uses which claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from bayplan.fit.index import Index
from bayplan.fit.shapes.matching import ClassKey, class_key
from bayplan.fit.shapes.shape import Shape
from bayplan.fit.state.disks import Disk
from bayplan.fit.volumes.identity import VolumeIdentity
from bayplan.kube.meta import Labels
from bayplan.kube.pods import Pod

if TYPE_CHECKING:
    from bayplan.fit.state.census import PodClass

NO_SLOT = -1


class PodRecord:
    """A pod, its shape, and the node it is (or is assumed to be) on."""

    __slots__ = (
        "claims",
        "disks",
        "inline",
        "key",
        "labels",
        "node",
        "pod",
        "pod_class",
        "shape",
        "slot",
        "standing",
        "terminating",
        "volumes",
    )

    def __init__(self, pod: Pod, key: str, shape: Shape, labels: Labels, node: str) -> None:
        self.pod = pod
        """The object as it was put; what is counted rests on what was read of it then, below."""
        self.key = key
        self.labels = labels
        self.terminating = pod.is_terminating
        self.shape = shape
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
        self.disks: tuple[Disk, ...] = ()
        self.standing: object = None
        """What preemption has worked out for the pod, to be kept with it."""

    @property
    def class_key(self) -> ClassKey:
        """How counters see it: pods of one key are one to all that are counted."""
        if self.pod_class is not None:
            return self.pod_class.key
        return class_key(self.shape.namespace, self.labels, terminating=self.terminating)


def placed_on(pod: Pod, node: str) -> Pod:
    """The pod as an object on a node, or (empty) on none."""
    if pod.spec.node_name == node:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=node))


class Pods:
    """All pods, by name, by node and by claim."""

    def __init__(self) -> None:
        self.by_key: dict[str, PodRecord] = {}
        self.by_node: dict[str, dict[str, PodRecord]] = {}
        self.by_claim = Index()

    def settle(self, key: str, record: PodRecord) -> None:
        """The pod is on its node from now on."""
        self.by_node.setdefault(record.node, {})[key] = record

    def reorder(self, node: str, records: list[PodRecord]) -> None:
        """The pods of a node, all of them, are in this order from now on."""
        if records:
            self.by_node[node] = {record.key: record for record in records}

    def unsettle(self, key: str, record: PodRecord) -> None:
        """The pod is no longer on its node."""
        there = self.by_node[record.node]
        del there[key]
        if not there:
            del self.by_node[record.node]
