"""Pods for which a node is kept: they wait for others to leave it, and have its name already.

A pod that has no node yet is nominated by its status, or by what a scheduler has decided and not
yet seen in a status (`tell`). A pod that is placed, even if only assumed to be, is not nominated.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod


class Nominations:
    """Nominated pods, by the node they are nominated for."""

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, PodRecord]] = {}
        self.told: dict[str, str] = {}
        """By pod, the node (or none) that counts until its status says something new."""
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
        told = self.told.get(pod.key)
        return pod.status.nominated_node_name if told is None else told

    def shown(self, pod: Pod) -> Pod:
        """The pod as an object whose status says what counts."""
        node = self.node_of(pod)
        if node == pod.status.nominated_node_name:
            return pod
        return replace(pod, status=replace(pod.status, nominated_node_name=node))

    def enlist(self, record: PodRecord) -> None:
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

    def strike(self, record: PodRecord) -> None:
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


def says_anew(before: Pod, after: Pod) -> bool:
    """Whether a pod's status says of its nomination what must be heeded.

    One that did not speak of it before and does not now may only be late.
    """
    spoken = before.status.nominated_node_name or after.status.nominated_node_name
    return bool(spoken) or before.metadata.uid != after.metadata.uid
