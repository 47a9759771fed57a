"""Node templates: a node, its CSINode, and the daemon pods that every such node runs.

A template is declared (from what a node group is configured with) or copied from a running node,
without what is only that node's own: its name, its cordon, taints of a state it is in. New nodes of
one template differ in nothing but their names, and the labels that hold their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.fit.snapshot import Snapshot
from bayplan.kube.daemonsets import belongs_to_node, daemon_pod, should_run_on
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.meta import KubeObject, ObjectMeta, OwnerReference
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Affinity, Pod
from bayplan.kube.storage import CSINode, PersistentVolumeClaim
from bayplan.kube.tolerations import is_status_taint
from bayplan.kube.workloads import DaemonSet

GATE = "VolumeLimitScaling"


@dataclass(frozen=True, slots=True, eq=False)
class NodeTemplate:
    """What all new nodes of one kind have in common."""

    node: Node
    csinode: CSINode | None = None
    """The CSINode of new nodes; None if they will have no CSI driver."""
    daemons: tuple[Pod, ...] = ()
    group: str = ""
    """What new nodes are named after; by default the node itself."""

    @classmethod
    def from_node(
        cls, snapshot: Snapshot, name: str, *, drops: Callable[[Taint], bool] | None = None
    ) -> NodeTemplate:
        """Return a template copied from a running node; `drops` are taints that a new one would not
        have, beside those of a state.
        """
        node = snapshot.cluster.node_named(name)
        if node is None:
            raise LookupError(f"node {name!r} is not in the snapshot")
        return cls(
            node=_as_new(node, drops),
            csinode=snapshot.cluster.csinodes.get(name),
            daemons=tuple(pod for pod in snapshot.pods_on(name) if belongs_to_node(pod)),
        )

    @property
    def own_labels(self) -> frozenset[str]:
        """The labels that hold the node's name, and so differ between new nodes.

        Beside the hostname these are topology keys of CSI drivers, for storage of one node.
        """
        labels, name = self.node.metadata.labels, self.node.name
        drivers = self.csinode.spec.drivers if self.csinode is not None else ()
        keys = (key for driver in drivers for key in driver.topology_keys)
        return frozenset({HOSTNAME, *(key for key in keys if labels.get(key) == name)})

    def objects(self, name: str, *, with_csinode: bool = True) -> Iterator[KubeObject]:
        """Yield a new node of this name, its CSINode and its daemon pods."""
        labels = self.node.metadata.labels | dict.fromkeys(self.own_labels, name)
        metadata = ObjectMeta(name=name, labels=labels, annotations=self.node.metadata.annotations)
        yield replace(self.node, metadata=metadata)
        if self.csinode is not None and with_csinode:
            yield _csinode_of(self.csinode, name)
        for daemon in self.daemons:
            pod = _daemon_on(daemon, name)
            yield from ephemeral_claims(pod)
            yield pod


def add_node(snapshot: Snapshot, template: NodeTemplate, name: str) -> None:
    """Put a new node into a snapshot; without its CSINode, if the gate is off."""
    gate = snapshot.profile.gates.enabled(GATE)
    for obj in template.objects(name, with_csinode=gate):
        snapshot.put(obj)


def daemons_for(node: Node, daemon_sets: Iterable[DaemonSet]) -> tuple[Pod, ...]:
    """Return the DaemonSet pods that a node of a template will run."""
    return tuple(daemon_pod(one, node.name) for one in daemon_sets if should_run_on(one, node))


def _as_new(node: Node, drops: Callable[[Taint], bool] | None) -> Node:
    taints = [
        taint
        for taint in node.spec.taints
        if not is_status_taint(taint) and not (drops and drops(taint))
    ]
    spec = replace(node.spec, taints=taints, unschedulable=False, provider_id="")
    return replace(node, spec=spec)


def _csinode_of(csinode: CSINode, name: str) -> CSINode:
    owner = OwnerReference(api_version="v1", kind="Node", name=name)
    metadata = ObjectMeta(
        name=name, annotations=csinode.metadata.annotations, owner_references=[owner]
    )
    return replace(csinode, metadata=metadata)


def _daemon_on(pod: Pod, node: str) -> Pod:
    """Return a daemon pod as a new node runs it, without its affinity to another node."""
    metadata = replace(
        pod.metadata, name=f"{pod.name}-{node}", uid=f"{pod.name}-{node}", deletion_timestamp=None
    )
    affinity = pod.spec.affinity
    if affinity is not None:
        affinity = Affinity(
            pod_affinity=affinity.pod_affinity, pod_anti_affinity=affinity.pod_anti_affinity
        )
    return replace(
        pod, metadata=metadata, spec=replace(pod.spec, node_name=node, affinity=affinity)
    )


def ephemeral_claims(pod: Pod) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims that are created for a pod's generic ephemeral volumes."""
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            made_from = volume.ephemeral.volume_claim_template
            owner = OwnerReference("v1", "Pod", pod.name, pod.metadata.uid, controller=True)
            metadata = ObjectMeta(
                name=f"{pod.name}-{volume.name}",
                namespace=pod.namespace,
                annotations=made_from.metadata.annotations,
                owner_references=[owner],
            )
            yield PersistentVolumeClaim(metadata=metadata, spec=made_from.spec)
