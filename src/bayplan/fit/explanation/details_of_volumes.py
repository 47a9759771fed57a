"""Claims and volumes in detail: which claim cannot be served on a node, and why."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.fit.explanation import amounts
from bayplan.fit.explanation.steps.labels import written
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.volumes.binding import first_consumer_claim, has_capacity
from bayplan.fit.volumes.objects import class_of_claim
from bayplan.fit.volumes.topology import reach_of, zone_needs
from bayplan.kube import quantity
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim

_UNKNOWN = "its driver says"


def binding_details(trial: Trial) -> list[str]:
    """The claims whose volume is out of reach, and those that no volume can be had for here."""
    return [*_out_of_reach(trial), *_unserved(trial)]


def zone_details(trial: Trial) -> list[str]:
    """The claims whose volume is said to be in another zone."""
    return [
        f"claim {claim.key} is bound to volume {pv.name},"
        f" which has label {need.label}={'__'.join(sorted(need.values))}"
        for claim, pv in bound_volumes(trial)
        for need in zone_needs(pv)
        if not need.met_by(trial.node)
    ]


def bound_volumes(trial: Trial) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
    """The pod's claims that have a volume, with it."""
    volumes = trial.snapshot.cluster.storage.volumes
    return [
        (claim, volumes[claim.spec.volume_name])
        for claim in _claims(trial)
        if claim.spec.volume_name in volumes
    ]


def _out_of_reach(trial: Trial) -> Iterator[str]:
    for claim, pv in bound_volumes(trial):
        if not reach_of(pv).includes(trial.node, trial.csinode):
            yield (
                f"claim {claim.key} is bound to volume {pv.name},"
                f" which can be reached only where {_where(pv)}"
            )


def _where(pv: PersistentVolume) -> str:
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    terms = required.node_selector_terms if required else []
    said = (
        " and ".join(written(e) for e in (*term.match_expressions, *term.match_fields))
        for term in terms
    )
    return " or ".join(filter(None, said)) or _UNKNOWN


def _unserved(trial: Trial) -> Iterator[str]:
    """Claims that wait for the pod, and cannot be served on this node."""
    storage = trial.snapshot.cluster.storage
    for claim in _claims(trial):
        if claim.spec.volume_name:
            continue
        waits = first_consumer_claim(claim, storage)
        name, wanted = class_of_claim(claim), _size(claim)
        if waits.selected_node not in (None, trial.name):
            yield f"claim {claim.key} is selected for node {waits.selected_node}"
        elif not waits.provisioning.can_provision:
            yield (
                f"claim {claim.key} wants {wanted} of class {name!r}, for which nobody makes"
                " volumes, and no open one that can be reached from here will do"
            )
        elif not waits.provisioning.allowed_on(trial.node):
            yield f"claim {claim.key} is of class {name!r}, which makes no volumes for this node"
        elif (capacity := waits.provisioning.capacity) is not None and not has_capacity(
            capacity, trial.node, storage
        ):
            yield f"claim {claim.key} wants {wanted} of class {name!r}, more than is left here"


def _claims(trial: Trial) -> list[PersistentVolumeClaim]:
    storage = trial.snapshot.cluster.storage
    found = (storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes)
    return [claim for claim in found if claim is not None]


def _size(claim: PersistentVolumeClaim) -> str:
    return amounts.size(quantity.value(claim.spec.resources.requests.get("storage", 0)))
