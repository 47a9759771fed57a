"""VolumeRestrictions: disks that pods on one node cannot share, and claims that only one pod may
use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import EvaluationRequest, Filter, PreFilterInput, UsageFilter
from bayplan.fit.plugins.capacity import Capacity, EquivalenceClass, Exclusion, HostTopology
from bayplan.fit.plugins.explanation import Explainer, Proposal, Trial, move_pod
from bayplan.fit.plugins.hints import (
    ClusterEvent,
    Hints,
    UnschedulablePod,
    is_own_claim,
    removed_pod,
)
from bayplan.fit.plugins.plugin import FILTERING, Cause, SchedulerPlugin
from bayplan.fit.plugins.volume_binding.claims import claim_steps
from bayplan.fit.requirements.claims import READ_WRITE_ONCE_POD
from bayplan.fit.state.cluster import ClusterState
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

    def __init__(self, request: EvaluationRequest) -> None:
        self._requirements = request.requirements
        self._cluster = request.cluster

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes where the disks are free, if the claims are."""
        if self._requirements.exclusive_claim_in_use:
            return np.zeros_like(self._cluster.alive[rows])
        conflicting = self._cluster.disks.conflicting(self._requirements.disks)
        return self._cluster.slots.without(conflicting, rows)

    def refusal(self, slot: int) -> Refusal:
        """A disk conflict on the node, else the claim that another pod uses."""
        conflicting = slot in self._cluster.disks.conflicting(self._requirements.disks)
        return Refusal.unschedulable(NAME, DISK_CONFLICT if conflicting else CLAIM_CONFLICT)

    def is_affected_by(self, record: PodRecord) -> bool:
        """Those that have volumes."""
        return bool(record.pod.spec.volumes)


def refusal_before_nodes(arrival: PreFilterInput) -> Refusal | None:
    """A claim that the pod names and that is not there."""
    for claim in arrival.claims:
        named = claim.volume.persistent_volume_claim
        if claim.facts is None and named is not None:
            return Refusal.unresolvable(
                NAME, f'persistentvolumeclaim "{named.claim_name}" not found'
            )
    return None


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod names disks or wants a claim for itself that is in use."""
    requirements = request.requirements
    if not requirements.disks and not requirements.exclusive_claim_in_use:
        return None
    return VolumeRestrictions(request)


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod was removed that has disks, or one of the claims."""
    pod = removed_pod(event)
    if pod is None or not pod.spec.volumes:
        return False
    return bool(disks_of(pod)) or not pending.claims.isdisjoint(claims_of(pod))


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a node was added, or was removed with a pod that has one of the claims."""
    return event.before is None or (event.after is None and bool(pending.claims))


_HINTS: Hints = {Node: _node_may_help, Pod: _pod_may_help, PersistentVolumeClaim: is_own_claim}


def stop_claim_user(trial: Trial) -> Iterable[Step]:
    """Stop the pods that have a claim for themselves which this pod wants."""
    users = users_of_exclusive_claims(trial)
    if users:
        described = ", ".join(
            f"{user} (it has claim {key} for itself)" for user, key in users.items()
        )
        deletes = tuple((Pod, user) for user in users)
        cost = 4.0 * len(users)
        yield Step(FixKind.STOP_POD, f"stop pod {described}", cost, trial.pod, deletes=deletes)


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


def _claims_of_going(event: ClusterEvent) -> Collection[str]:
    """The claims of a pod that goes."""
    return claims_of(event.before) if isinstance(event.before, Pod) else ()


def _disks(pods: EquivalenceClass) -> tuple[InlineDisk, ...]:
    return pods.requirements.disks if pods.requirements else ()


def _collide(
    there: EquivalenceClass, coming: EquivalenceClass, _: HostTopology | None = None
) -> bool:
    """Whether two pods name a disk that they cannot both have mounted."""
    disks = _disks(coming)
    return any(
        one.name == other.name and not (one.read_only and other.read_only)
        for one in _disks(there)
        for other in disks
    )


def _free_capacity(_: ClusterState, pods: EquivalenceClass) -> int | None:
    return 1 if _collide(pods, pods) else None


_CAPACITY = Capacity(
    free_capacity=_free_capacity,
    exclusion=Exclusion(may_exclude=lambda pods, _: bool(_disks(pods)), excludes=_collide),
)
PLUGIN = SchedulerPlugin(
    name=NAME,
    points=FILTERING,
    cause=Cause.VOLUMES,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    hints=_HINTS,
    capacity=_CAPACITY,
    sets_apart=_claims_of_going,
    explainer=Explainer(
        details=_details,
        proposals=(Proposal(move_pod, tries=True), Proposal(stop_claim_user)),
        least_cost=3.0,
    ),
    steps_before_nodes=claim_steps,
)
