"""Volumes that are attached to missing nodes, or cannot be attached or detached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    make_finding,
    plural,
    shortened,
)
from bayplan.kube.nodes import Node
from bayplan.kube.storage import VolumeAttachment, VolumeError

GONE = CheckKind(
    "AttachedToGoneNode",
    Severity.ERROR,
    "a volume is attached to a node that does not exist",
    "A ReadWriteOnce volume cannot be attached to another node: its pod stays in"
    " ContainerCreating until the attachment is removed (after six minutes at the earliest).",
    "Make sure that the machine is gone, then: kubectl delete volumeattachment NAME. If the object"
    " stays, the driver's external-attacher is not running.",
    (Node, VolumeAttachment),
)
NOT_ATTACHED = CheckKind(
    "AttachFails",
    Severity.ERROR,
    "a volume cannot be attached",
    "The pod that needs it does not start.",
    "Read the whole message with kubectl describe volumeattachment NAME, and the log of the"
    " driver's external-attacher.",
    (VolumeAttachment,),
)
NOT_DETACHED = CheckKind(
    "DetachFails",
    Severity.ERROR,
    "a volume cannot be detached",
    "It still uses an attach slot of the node, and cannot be attached to another node.",
    "Read the whole message with kubectl describe volumeattachment NAME, and the log of the"
    " driver's external-attacher.",
    (VolumeAttachment,),
)
KINDS = (GONE, NOT_ATTACHED, NOT_DETACHED)
Errors = defaultdict[tuple[str, bool], list[Example]]


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about attachments, by driver."""
    gone: defaultdict[str, list[Example]] = defaultdict(list)
    failed: Errors = defaultdict(list)
    for one in cluster.all(VolumeAttachment):
        spec, driver = one.spec, one.spec.attacher
        if spec.node_name not in cluster.nodes and not _is_new(one, cluster):
            volume = spec.source.persistent_volume_name or "an inline volume"
            gone[driver].append(Example(one.name, f"{volume} on {spec.node_name}"))
        elif (error := _error(one)) is not None:
            message = shortened(error.message)
            detail = f"node {spec.node_name}: {message}" if message else f"node {spec.node_name}"
            failed[driver, _is_detaching(one)].append(Example(one.name, detail))
    for driver, examples in sorted(gone.items()):
        text = f"{plural(len(examples), 'volume')} of {driver} attached to nodes that do not exist"
        yield make_finding(GONE, "VolumeAttachment", examples, text, about=driver)
    for (driver, is_detaching), examples in sorted(failed.items()):
        way, kind = ("detached", NOT_DETACHED) if is_detaching else ("attached", NOT_ATTACHED)
        text = f"{plural(len(examples), 'volume')} of {driver} cannot be {way}"
        yield make_finding(kind, "VolumeAttachment", examples, text, about=driver)


def _is_new(one: VolumeAttachment, cluster: CheckedCluster) -> bool:
    """Return whether it may be newer than the list of nodes, which is read separately."""
    return cluster.is_young(one.metadata.creation_timestamp)


def _error(one: VolumeAttachment) -> VolumeError | None:
    """Return the error that applies now: of detaching, or of attaching if not attached yet."""
    if _is_detaching(one):
        return one.status.detach_error
    return None if one.status.attached else one.status.attach_error


def _is_detaching(one: VolumeAttachment) -> bool:
    return one.metadata.deletion_timestamp is not None
