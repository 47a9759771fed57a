"""What a new node would be: a node, its CSINode, and the pods that every such node runs.

A template is declared (from what a group of nodes says of itself) or copied from a node that runs,
without what is only that node's own: its name, its cordon, taints of a state it is in. New nodes of
one template differ in nothing but their names, and the labels that hold their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.fit.snapshot import Snapshot
from bayplan.kube.daemons import belongs_to_node, daemon_pod, runs_on
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.meta import KubeObject, ObjectMeta, OwnerReference
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Affinity, Pod
from bayplan.kube.storage import CSINode, PersistentVolumeClaim
from bayplan.kube.tolerations import tells_state
from bayplan.kube.workloads import DaemonSet

GATE = "VolumeLimitScaling"


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What all new nodes of one kind have in common."""

    node: Node
    csinode: CSINode | None = None
    """What the node's drivers will report; None if it will have no CSI driver."""
    daemons: tuple[Pod, ...] = ()
    group: str = ""
    """What new nodes are called after; the node itself, if nothing is said."""

    @classmethod
    def like(
        cls, snapshot: Snapshot, name: str, *, drops: Callable[[Taint], bool] | None = None
    ) -> Template:
        """A template after a node that runs; `drops` says which taints a new one would not
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
        """The labels that differ from one new node to the next, because they hold its name."""
        labels = self.node.metadata.labels
        return frozenset({HOSTNAME, *(k for k, v in labels.items() if v == self.node.name)})

    def objects(self, name: str, *, with_csinode: bool = True) -> Iterator[KubeObject]:
        """A new node of this name, with all that comes with it."""
        labels = self.node.metadata.labels | dict.fromkeys(self.own_labels, name)
        metadata = ObjectMeta(name=name, labels=labels, annotations=self.node.metadata.annotations)
        yield replace(self.node, metadata=metadata)
        if self.csinode is not None and with_csinode:
            yield _csinode_of(self.csinode, name)
        for daemon in self.daemons:
            pod = _daemon_on(daemon, name)
            yield from ephemeral_claims(pod)
            yield pod


def add_node(snapshot: Snapshot, template: Template, name: str) -> None:
    """Put a new node into a snapshot; without what drivers will say, if the gate is off."""
    gate = snapshot.profile.gates.enabled(GATE)
    for obj in template.objects(name, with_csinode=gate):
        snapshot.put(obj)


def daemons_for(node: Node, daemon_sets: Iterable[DaemonSet]) -> tuple[Pod, ...]:
    """The daemons that a node of a template will run, by the sets that there are."""
    return tuple(daemon_pod(one, node.name) for one in daemon_sets if runs_on(one, node))


def _as_new(node: Node, drops: Callable[[Taint], bool] | None) -> Node:
    taints = [
        taint
        for taint in node.spec.taints
        if not tells_state(taint) and not (drops and drops(taint))
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
    """The daemon as a new node runs it; what ties a pod to another node is left out."""
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
    """The claims that will be made for a pod's generic ephemeral volumes."""
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
