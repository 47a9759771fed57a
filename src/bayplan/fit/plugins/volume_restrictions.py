"""VolumeRestrictions: disks that pods on one node cannot share, and claims that only one pod may
use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from bayplan.fit.events import Event
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Arrival, Filter, Question, UsageFilter
from bayplan.fit.plugins.capacity import AlikePods, Capacity, Exclusion, OneNode
from bayplan.fit.plugins.hints import Hints, Waiting, gone, own_claim
from bayplan.fit.plugins.moves import move_a_pod
from bayplan.fit.plugins.plugin import FILTERING, Cause, Plugin
from bayplan.fit.plugins.trial import Explaining, Proposal, Trial
from bayplan.fit.plugins.volume_binding.claims import claim_steps
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.claims import READ_WRITE_ONCE_POD
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.state.node_usage import InlineDisk, disks_of
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim

NAME = "VolumeRestrictions"
DISK_CONFLICT = "node(s) had no available disk"
CLAIM_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


class VolumeRestrictions(UsageFilter):
    """Disks and claims that are not shared."""

    name = NAME

    def __init__(self, question: Question) -> None:
        self._requirements = question.requirements
        self._cluster = question.cluster

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes where the disks are free, if the claims are."""
        if self._requirements.exclusive_claim_in_use:
            return np.zeros_like(self._cluster.alive[rows])
        conflicting = self._cluster.disks.conflicting(self._requirements.disks)
        return self._cluster.slots.without(conflicting, rows)

    def refusal(self, slot: int) -> Refusal:
        """A disk conflict on the node, else the claim that another pod uses."""
        conflicting = slot in self._cluster.disks.conflicting(self._requirements.disks)
        return Refusal.unschedulable(NAME, DISK_CONFLICT if conflicting else CLAIM_CONFLICT)

    def heeds(self, record: PodRecord) -> bool:
        """Those that have volumes."""
        return bool(record.pod.spec.volumes)


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """A claim that the pod names and that is not there."""
    for claim in arrival.claims:
        named = claim.volume.persistent_volume_claim
        if claim.facts is None and named is not None:
            return Refusal.unresolvable(
                NAME, f'persistentvolumeclaim "{named.claim_name}" not found'
            )
    return None


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod names disks or wants a claim for itself that is in use."""
    needs = question.requirements
    if not needs.disks and not needs.exclusive_claim_in_use:
        return None
    return VolumeRestrictions(question)


def _pod_may_help(waiting: Waiting, event: Event) -> bool:
    """A pod went that has disks, or one of the claims."""
    pod = gone(event)
    if pod is None or not pod.spec.volumes:
        return False
    return bool(disks_of(pod)) or not waiting.claims.isdisjoint(claims_of(pod))


def _node_may_help(waiting: Waiting, event: Event) -> bool:
    """A node came, or went with a pod that has one of the claims."""
    return event.before is None or (event.after is None and bool(waiting.claims))


_HINTS: Hints = {Node: _node_may_help, Pod: _pod_may_help, PersistentVolumeClaim: own_claim}


def stop_claim_user(trial: Trial) -> Iterable[Step]:
    """Stop the pods that have a claim for themselves which this pod wants."""
    users = users_of_exclusive_claims(trial)
    if users:
        said = ", ".join(f"{user} (it has claim {key} for itself)" for user, key in users.items())
        deletes = tuple((Pod, user) for user in users)
        cost = 4.0 * len(users)
        yield Step(FixKind.STOP_POD, f"stop pod {said}", cost, trial.pod, deletes=deletes)


def users_of_exclusive_claims(trial: Trial) -> dict[str, str]:
    """Other pods, by key, with the claim that each has for itself and this pod wants."""
    cluster = trial.cluster
    users: dict[str, str] = {}
    for volume in trial.pod.spec.volumes:
        key, claim = cluster.storage.claim_of(trial.pod, volume)
        if claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes:
            users |= {
                user: key
                for user in sorted(cluster.pods.by_claim.of(key))
                if user != trial.pod.key and cluster.pods.by_key[user].slot >= 0
            }
    return users


def _details(trial: Trial) -> list[str]:
    users = users_of_exclusive_claims(trial)
    return [f"pod {user} has claim {claim} for itself" for user, claim in users.items()]


def _claims_of_going(event: Event) -> Collection[str]:
    """The claims of a pod that goes."""
    return claims_of(event.before) if isinstance(event.before, Pod) else ()


def _disks(pods: AlikePods) -> tuple[InlineDisk, ...]:
    return pods.requirements.disks if pods.requirements else ()


def _collide(there: AlikePods, coming: AlikePods, _: OneNode | None = None) -> bool:
    """Whether two pods name a disk that they cannot both have mounted."""
    disks = _disks(coming)
    return any(
        one.name == other.name and not (one.read_only and other.read_only)
        for one in _disks(there)
        for other in disks
    )


def _room(_: Cluster, pods: AlikePods) -> int | None:
    return 1 if _collide(pods, pods) else None


_CAPACITY = Capacity(
    room=_room,
    exclusion=Exclusion(may=lambda pods, _: bool(_disks(pods)), keeps_off=_collide),
)
PLUGIN = Plugin(
    name=NAME,
    points=FILTERING,
    cause=Cause.VOLUMES,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    hints=_HINTS,
    capacity=_CAPACITY,
    sets_apart=_claims_of_going,
    explaining=Explaining(
        details=_details,
        proposals=(Proposal(move_a_pod, tries=True), Proposal(stop_claim_user)),
        least_cost=3.0,
    ),
    steps_before_nodes=claim_steps,
)
