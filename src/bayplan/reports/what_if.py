"""What if: more nodes, fewer nodes, more replicas of a pod; tried on the snapshot of a cluster."""

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
from bayplan.fit.batches import Template, daemons_for, ephemeral_claims
from bayplan.kube.daemons import belongs_to_node
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.meta import ObjectMeta, OwnerReference
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod, PodResourceClaimStatus, PodStatus
from bayplan.kube.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolumeClaim
from bayplan.kube.volumes import Volume
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import NotOfferedError
from bayplan.reports.declared import declared_groups

MOST_NODES = 10_000
MOST_REPLICAS = 10_000
_WRITTEN = re.compile(r"([0-9]{1,9})\s*[xX*\N{MULTIPLICATION SIGN}]\s*(.+)")


def add_nodes(
    snapshot: Snapshot, written: Sequence[str], groups: Path | None, daemons: Sequence[DaemonSet]
) -> None:
    """Put nodes that were asked for as `3xGROUP`, or as `3xNODE` for some like one that is there;
    InputError if they cannot be had.
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
        raise InputError(f"--with-nodes {shown}: not of the form NxGROUP, such as 3xworkers")
    count = int(found[1])
    if not 0 < count <= MOST_NODES:
        raise InputError(f"--with-nodes {written[:80]}: not 1 to {MOST_NODES:,} nodes")
    return count, found[2]


def _templates(file: Path | None, daemons: Sequence[DaemonSet]) -> dict[str, Template]:
    found = {}
    try:
        for said in declared_groups(file):
            template = template_from(said)
            runs = daemons_for(template.node, daemons)
            found[said.group] = Template(template.node, template.csi_node, runs, said.group)
    except NotOfferedError as error:
        raise InputError(str(error)) from None
    return found


def _like(snapshot: Snapshot, name: str, groups: dict[str, Template]) -> Template:
    if name not in snapshot.cluster.slots.by_name:
        known = [*groups, *snapshot.cluster.slots.by_name]
        said = no_such("node group or node", name[:80], known)
        raise InputError(f"--with-nodes: {said}")
    return Template.like(snapshot, name)


def remove_nodes(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Take nodes away: what belongs to a node goes with it, and its other pods wait again."""
    for name in names:
        if name not in snapshot.cluster.slots.by_name:
            said = no_such("node", name[:80], snapshot.cluster.slots.by_name)
            raise InputError(f"--without-node: {said}")
        for pod in snapshot.pods_on(name):
            snapshot.delete(Pod, pod.key)
            if not belongs_to_node(pod):
                snapshot.put(_waiting(pod))
        snapshot.delete(Node, name)


def _waiting(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=""), status=PodStatus())


def replicas(snapshot: Snapshot, pod: Pod, count: int) -> Iterator[Pod]:
    """A pod so many times over, each further one waiting. Claims that are its own by their name
    (`data-web-0` of `web-0`) are each replica's own; others are shared.
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
        yield newly_made(snapshot, _waiting(replace(pod, metadata=metadata, spec=spec)))


def newly_made(snapshot: Snapshot, pod: Pod) -> Pod:
    """A pod that somebody has just made, with the claims that controllers will make for it: those
    of ephemeral volumes, and those to devices after a template, which nobody has allocated yet.
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
    """A new claim like another, bound to nothing."""
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
