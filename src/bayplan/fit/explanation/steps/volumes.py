"""Claims that wait for the pod and cannot be served on a node: a volume for them there, or a node
that was selected for them before forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.steps.made import open_volume, size_of
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.volumes.binding import NO_PROVISIONER
from bayplan.fit.volumes.objects import StorageObjects, class_of_claim
from bayplan.kube.storage import SELECTED_NODE, PersistentVolumeClaim


def add_volume(trial: Trial) -> Iterable[Step]:
    """A volume on the node for each claim that nobody makes one for."""
    storage = trial.snapshot.cluster.storage
    claims = [storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes]
    unserved = [claim for claim in claims if claim and not claim.spec.volume_name]
    static = [claim for claim in unserved if not _is_provisioned(storage, claim)]
    if not static:
        return
    said = ", ".join(f"{size_of(claim)} of class {class_of_claim(claim)!r}" for claim in static)
    puts = tuple(open_volume(claim, trial.node) for claim in static)
    text = f"add a PersistentVolume on node {trial.name} ({said})"
    yield Step(FixKind.ADD_VOLUME, text, 3.5 * len(static), trial.pod, puts)


def forget_selected_node(trial: Trial) -> Iterable[Step]:
    """Let claims be served on any node that are selected for another one."""
    storage = trial.snapshot.cluster.storage
    claims = [storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes]
    held = [
        claim
        for claim in claims
        if claim is not None and not claim.spec.volume_name
        and claim.metadata.annotations.get(SELECTED_NODE, trial.name) != trial.name
    ]  # fmt: skip
    if not held:
        return
    said = ", ".join(
        f"claim {one.key} (selected for node {one.metadata.annotations[SELECTED_NODE]})"
        for one in held
    )
    puts = tuple(_unselected(claim) for claim in held)
    text = f"forget the node that was selected for {said}"
    yield Step(FixKind.FORGET_NODE, text, 2.0 * len(held), trial.pod, puts)


def _unselected(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    left = {k: v for k, v in claim.metadata.annotations.items() if k != SELECTED_NODE}
    return replace(claim, metadata=replace(claim.metadata, annotations=left))


def _is_provisioned(storage: StorageObjects, claim: PersistentVolumeClaim) -> bool:
    storage_class = storage.class_of(claim)
    return storage_class is not None and storage_class.provisioner not in {
        "",
        NO_PROVISIONER,
    }
