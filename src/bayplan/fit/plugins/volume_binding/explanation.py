"""Which claims cannot be served on a node and why; and what would lift that: a volume for them
there, or to clear a node that was selected before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from bayplan.fit import amounts
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.explanation import (
    ChangedNode,
    Explainer,
    NodeChange,
    Proposal,
    Trial,
    with_labels,
)
from bayplan.fit.plugins.node_affinity import describe_expression
from bayplan.fit.plugins.volume_binding.claims import open_volume, size_of
from bayplan.fit.volumes.binding import NO_PROVISIONER, first_consumer_claim, has_capacity
from bayplan.fit.volumes.objects import StorageObjects, class_of_claim
from bayplan.fit.volumes.topology import reach_of, zone_labels
from bayplan.kube import quantity
from bayplan.kube.meta import Labels
from bayplan.kube.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim

_UNKNOWN = "its driver allows"


def binding_details(trial: Trial) -> list[str]:
    """Describe the claims whose volume is out of reach, and those that cannot be served here."""
    return [*_out_of_reach(trial), *_unserved(trial)]


def _out_of_reach(trial: Trial) -> Iterator[str]:
    for claim, pv in trial.cluster.storage.bound_volumes(trial.pod):
        if not reach_of(pv).includes(trial.node, trial.csinode):
            yield (
                f"claim {claim.key} is bound to volume {pv.name},"
                f" which can be reached only where {_where(pv)}"
            )


def _where(pv: PersistentVolume) -> str:
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    terms = required.node_selector_terms if required else []
    described = (
        " and ".join(describe_expression(e) for e in (*term.match_expressions, *term.match_fields))
        for term in terms
    )
    return " or ".join(filter(None, described)) or _UNKNOWN


def _unserved(trial: Trial) -> Iterator[str]:
    """Claims that wait for the pod, and cannot be served on this node."""
    storage = trial.cluster.storage
    for claim in _claims(trial):
        if claim.spec.volume_name:
            continue
        waits = first_consumer_claim(claim, storage)
        name, wanted = class_of_claim(claim), _size(claim)
        if waits.selected_node not in (None, trial.name):
            yield f"claim {claim.key} is selected for node {waits.selected_node}"
        elif not waits.provisioning.can_provision:
            yield (
                f"claim {claim.key} wants {wanted} of class {name!r}, which has no"
                " provisioner, and no available volume that can be reached from here will do"
            )
        elif not waits.provisioning.allowed_on(trial.node):
            yield (
                f"claim {claim.key} is of class {name!r}, which provisions no volumes for this node"
            )
        elif (capacity := waits.provisioning.capacity) is not None and not has_capacity(
            capacity, trial.node, storage
        ):
            yield f"claim {claim.key} wants {wanted} of class {name!r}, more than is left here"


def _claims(trial: Trial) -> list[PersistentVolumeClaim]:
    storage = trial.cluster.storage
    found = (storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes)
    return [claim for claim in found if claim is not None]


def _size(claim: PersistentVolumeClaim) -> str:
    return amounts.size(quantity.value(claim.spec.resources.requests.get("storage", 0)))


# -- what is proposed ----------------------------------------------------------------------------


def add_volume(trial: Trial) -> Iterable[Step]:
    """Propose a volume on the node for each claim that is not provisioned."""
    storage = trial.cluster.storage
    claims = [storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes]
    unserved = [claim for claim in claims if claim and not claim.spec.volume_name]
    static = [claim for claim in unserved if not _is_provisioned(storage, claim)]
    if not static:
        return
    described = ", ".join(
        f"{size_of(claim)} of class {class_of_claim(claim)!r}" for claim in static
    )
    puts = tuple(open_volume(claim, trial.node) for claim in static)
    text = f"add a PersistentVolume on node {trial.name} ({described})"
    yield Step(FixKind.ADD_VOLUME, text, 3.5 * len(static), trial.pod, puts)


def forget_selected_node(trial: Trial) -> Iterable[Step]:
    """Propose to clear the selected node of claims that are selected for another one."""
    storage = trial.cluster.storage
    claims = [storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes]
    held = [
        claim
        for claim in claims
        if claim is not None and not claim.spec.volume_name
        and claim.metadata.annotations.get(SELECTED_NODE, trial.name) != trial.name
    ]  # fmt: skip
    if not held:
        return
    described = ", ".join(
        f"claim {one.key} (selected for node {one.metadata.annotations[SELECTED_NODE]})"
        for one in held
    )
    puts = tuple(_unselected(claim) for claim in held)
    text = f"clear the selected node of {described}"
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


def _in_zone_of_volumes(trial: Trial) -> ChangedNode | None:
    """The node in the zone of the volumes that the pod is bound to."""
    wanted: Labels = {}
    for _, pv in trial.cluster.storage.bound_volumes(trial.pod):
        wanted |= zone_labels(pv)
    labels = trial.node.metadata.labels
    there = {key: value for key, value in wanted.items() if key in labels}
    if all(labels[key] == value for key, value in there.items()):
        return None
    zones = ", ".join(sorted(set(there.values())))
    return ChangedNode(with_labels(trial.node, wanted), f", but in {zones}, where its volumes are")


IN_ZONE_OF_VOLUMES = NodeChange(_in_zone_of_volumes, FixKind.ADD_NODE, 4.6)
EXPLAINER = Explainer(
    details=binding_details,
    proposals=(Proposal(forget_selected_node), Proposal(add_volume)),
    least_cost=3.5,
    new_node=IN_ZONE_OF_VOLUMES,
)
