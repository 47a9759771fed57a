"""Hypothetical changes of a snapshot: more nodes, fewer nodes, more replicas of a pod."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from bayplan.autoscaler.providers.declared.templates import template_from
from bayplan.base.errors import InputError
from bayplan.base.suggestions import no_such
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate, daemons_for, ephemeral_claims
from bayplan.kube.daemonsets import belongs_to_node
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.meta import ObjectMeta, OwnerReference
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod, PodResourceClaimStatus, PodStatus
from bayplan.kube.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolumeClaim
from bayplan.kube.volumes import Volume
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import UnimplementedError
from bayplan.reports.declared import declared_groups

MOST_NODES = 10_000
MOST_REPLICAS = 10_000
_WRITTEN = re.compile(r"([0-9]{1,9})\s*[xX*\N{MULTIPLICATION SIGN}]\s*(.+)")


def add_nodes(
    snapshot: Snapshot, written: Sequence[str], groups: Path | None, daemons: Sequence[DaemonSet]
) -> None:
    """Add nodes given as `3xGROUP`, or as `3xNODE` for copies of an existing node.

    InputError if there is no such group or node.
    """
    templates = _templates(groups, daemons)
    for one in written:
        count, name = _read(one)
        template = templates.get(name) or _like(snapshot, name, templates)
        taken = snapshot.cluster.slots.by_name
        free = (new for i in itertools.count(1) if (new := f"{name}-new-{i}") not in taken)
        for new in list(itertools.islice(free, count)):
            for obj in template.objects(new):
                snapshot.put(obj)


def _read(written: str) -> tuple[int, str]:
    found = _WRITTEN.fullmatch(written.strip())
    if found is None:
        shown = written[:80]
        raise InputError(f"--with-nodes {shown}: must be NxGROUP, such as 3xworkers")
    count = int(found[1])
    if not 0 < count <= MOST_NODES:
        raise InputError(f"--with-nodes {written[:80]}: must be from 1 to {MOST_NODES:,} nodes")
    return count, found[2]


def _templates(file: Path | None, daemons: Sequence[DaemonSet]) -> dict[str, NodeTemplate]:
    found = {}
    try:
        for group in declared_groups(file):
            template = template_from(group)
            runs = daemons_for(template.node, daemons)
            found[group.group] = NodeTemplate(template.node, template.csi_node, runs, group.group)
    except UnimplementedError as error:
        raise InputError(str(error)) from None
    return found


def _like(snapshot: Snapshot, name: str, groups: dict[str, NodeTemplate]) -> NodeTemplate:
    if name not in snapshot.cluster.slots.by_name:
        known = [*groups, *snapshot.cluster.slots.by_name]
        message = no_such("node group or node", name[:80], known)
        raise InputError(f"--with-nodes: {message}")
    return NodeTemplate.from_node(snapshot, name)


def remove_nodes(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Remove nodes with their DaemonSet and mirror pods; their other pods become pending."""
    for name in names:
        if name not in snapshot.cluster.slots.by_name:
            message = no_such("node", name[:80], snapshot.cluster.slots.by_name)
            raise InputError(f"--without-node: {message}")
        for pod in snapshot.pods_on(name):
            snapshot.delete(Pod, pod.key)
            if not belongs_to_node(pod):
                snapshot.put(_pending(pod))
        snapshot.delete(Node, name)


def _pending(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=""), status=PodStatus())


def replicas(snapshot: Snapshot, pod: Pod, count: int) -> Iterator[Pod]:
    """Yield a pod and pending copies of it, `count` in all.

    Claims that belong to the pod by their name (`data-web-0` of `web-0`) are copied for each
    replica; others are shared.
    """
    yield pod
    for number in range(2, count + 1):
        name = f"{pod.name}-replica-{number}"
        own = {claim.key: claim for claim in _own_claims(snapshot, pod)}
        for claim in own.values():
            snapshot.put(_claim_for(claim, pod.name, name))
        volumes = [_renamed(one, pod, name, own) for one in pod.spec.volumes]
        uid = f"{pod.metadata.uid}-{number}"
        metadata = replace(pod.metadata, name=name, uid=uid, deletion_timestamp=None)
        spec = replace(pod.spec, volumes=volumes)
        yield with_generated_claims(snapshot, _pending(replace(pod, metadata=metadata, spec=spec)))


def with_generated_claims(snapshot: Snapshot, pod: Pod) -> Pod:
    """Return a new pod, and add the claims that controllers would create for it to the snapshot.

    These are the claims of ephemeral volumes, and unallocated ResourceClaims from templates.
    """
    pod = replace(pod, metadata=replace(pod.metadata, uid=pod.metadata.uid or f"uid-{pod.key}"))
    for volume_claim in ephemeral_claims(pod):
        snapshot.put(volume_claim)
    statuses = []
    for named in pod.spec.resource_claims:
        if named.resource_claim_template_name is not None:
            claim = _device_claim(pod, named.name)
            snapshot.put(claim)
            statuses.append(PodResourceClaimStatus(named.name, claim.name))
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))


def _device_claim(pod: Pod, name: str) -> ResourceClaim:
    owner = OwnerReference("v1", "Pod", pod.name, pod.metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=f"{pod.name}-{name}", namespace=pod.namespace, owner_references=[owner]
        )
    )


def _own_claims(snapshot: Snapshot, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    for volume in pod.spec.volumes:
        source = volume.persistent_volume_claim
        if source is not None and source.claim_name.endswith(f"-{pod.name}"):
            found = snapshot.get(PersistentVolumeClaim, f"{pod.namespace}/{source.claim_name}")
            if found is not None:
                yield found


def _claim_for(claim: PersistentVolumeClaim, pod: str, replica: str) -> PersistentVolumeClaim:
    """Return an unbound copy of a claim for a replica."""
    tied = (BIND_COMPLETED, SELECTED_NODE)
    annotations = {k: v for k, v in claim.metadata.annotations.items() if k not in tied}
    name = f"{claim.name.removesuffix(pod)}{replica}"
    metadata = replace(claim.metadata, name=name, uid=name, annotations=annotations)
    spec = replace(claim.spec, volume_name="")
    return replace(claim, metadata=metadata, spec=spec, status=replace(claim.status, phase=""))


def _renamed(
    volume: Volume, pod: Pod, replica: str, own: dict[str, PersistentVolumeClaim]
) -> Volume:
    source = volume.persistent_volume_claim
    if source is None or f"{pod.namespace}/{source.claim_name}" not in own:
        return volume
    name = f"{source.claim_name.removesuffix(pod.name)}{replica}"
    return replace(volume, persistent_volume_claim=replace(source, claim_name=name))
