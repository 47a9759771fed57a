"""Volumes that are attached where they should not be, or do not come or go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, shortened
from bayplan.kube.nodes import Node
from bayplan.kube.storage import VolumeAttachment, VolumeError

GONE = CheckKind(
    "AttachedToGoneNode",
    Severity.ERROR,
    "a volume is attached to a node that does not exist",
    "A volume that only one node may have cannot be attached anywhere else: its pod waits in"
    " ContainerCreating until the attachment goes (six minutes at best).",
    "See that the machine is gone, then: kubectl delete volumeattachment NAME. If it stays, the"
    " attacher of its driver is not at work.",
    (Node, VolumeAttachment),
)
NOT_ATTACHED = CheckKind(
    "AttachFails",
    Severity.ERROR,
    "a volume cannot be attached",
    "The pod that needs it does not start.",
    "Read the message; kubectl describe volumeattachment NAME has all of it, the log of the"
    " driver's attacher what went before.",
    (VolumeAttachment,),
)
NOT_DETACHED = CheckKind(
    "DetachFails",
    Severity.ERROR,
    "a volume cannot be detached",
    "It keeps its place on the node, and can be attached nowhere else.",
    "Read the message; kubectl describe volumeattachment NAME has all of it, the log of the"
    " driver's attacher what went before.",
    (VolumeAttachment,),
)
KINDS = (GONE, NOT_ATTACHED, NOT_DETACHED)
Errors = defaultdict[tuple[str, bool], list[Example]]


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """One pass over the attachments, told by driver."""
    gone: defaultdict[str, list[Example]] = defaultdict(list)
    failed: Errors = defaultdict(list)
    for one in subject.all(VolumeAttachment):
        spec, driver = one.spec, one.spec.attacher
        if spec.node_name not in subject.nodes and not _is_new(one, subject):
            volume = spec.source.persistent_volume_name or "an inline volume"
            gone[driver].append(Example(one.name, f"{volume} on {spec.node_name}"))
        elif (error := _error(one)) is not None:
            said = shortened(error.message)
            told = f"node {spec.node_name}: {said}" if said else f"node {spec.node_name}"
            failed[driver, _goes(one)].append(Example(one.name, told))
    for driver, examples in sorted(gone.items()):
        text = f"{plural(len(examples), 'volume')} of {driver} attached to nodes that are gone"
        yield found(GONE, "VolumeAttachment", examples, text, about=driver)
    for (driver, goes), examples in sorted(failed.items()):
        way, kind = ("detached", NOT_DETACHED) if goes else ("attached", NOT_ATTACHED)
        text = f"{plural(len(examples), 'volume')} of {driver} cannot be {way}"
        yield found(kind, "VolumeAttachment", examples, text, about=driver)


def _is_new(one: VolumeAttachment, subject: CheckedCluster) -> bool:
    """Nodes and attachments are not read at one moment."""
    return subject.is_young(one.metadata.creation_timestamp)


def _error(one: VolumeAttachment) -> VolumeError | None:
    """What keeps it from being as it is meant; errors of before that no longer matter are none."""
    if _goes(one):
        return one.status.detach_error
    return None if one.status.attached else one.status.attach_error


def _goes(one: VolumeAttachment) -> bool:
    return one.metadata.deletion_timestamp is not None
