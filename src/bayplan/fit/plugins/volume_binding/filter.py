"""VolumeBinding: bound volumes must be reachable, and unbound claims must be servable on the node.

Claims of one class look among the same volumes, the smallest claim first, and nodes that reach the
same sites serve them alike. When a volume is taken, only nodes that reach its site are looked at
again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.fit.decision import UNRESOLVABLE, Refusal
from bayplan.fit.plugins.base import (
    EvaluationRequest,
    Filter,
    NodeFilter,
    PreFilterInput,
    ReadScope,
)
from bayplan.fit.plugins.hints import (
    ClusterEvent,
    Hints,
    UnschedulablePod,
    any_change,
    is_new_or_relabelled,
    removed_pod,
)
from bayplan.fit.requirements.claims import LOST
from bayplan.fit.requirements.pods import PodClaim, belongs_to_another_pod
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, NodeSet, Rows
from bayplan.fit.volumes.available_volumes import Site, WantedVolume, smallest_volume
from bayplan.fit.volumes.binding import FirstConsumerClaim, Provisioning, find_volumes, has_capacity
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)


class ServedClaims:
    """The claims of one class, each with a volume or one that can be provisioned."""

    def __init__(
        self, class_name: str, claims: list[FirstConsumerClaim], cluster: ClusterState
    ) -> None:
        self._wanted = [claim.search[1] for claim in claims if claim.search]
        self._to_make = [makeable(claim.provisioning, cluster) for claim in claims]
        self._class_name = class_name
        self._cluster = cluster
        self._reachable = cluster.reachable(class_name)
        self._start_again()

    def mask(self) -> BoolArray:
        """The slots whose nodes serve every claim."""
        self._reachable = self._cluster.reachable(self._class_name)
        codes = self._reachable.codes()
        self._refresh()
        mask: BoolArray = np.ones(len(codes), dtype=np.bool_)
        for index, makeable_on in enumerate(self._to_make):
            mask &= self._served[codes, index] | makeable_on.mask()
        return mask

    def _start_again(self) -> None:
        self._served: BoolArray = np.zeros((0, len(self._wanted)), dtype=np.bool_)
        self._generation = self._reachable.generation
        self._cursor = self._reachable.volumes.changes.end

    def _refresh(self) -> None:
        changes = self._reachable.volumes.changes
        changed = changes.after(self._cursor)
        if changed is None or self._generation is not self._reachable.generation:
            self._start_again()
            changed = []
        known = len(self._served)
        missing = len(self._reachable.sites) - known
        if missing:
            more = np.zeros((missing, len(self._wanted)), dtype=np.bool_)
            self._served = np.concatenate([self._served, more])
        stale = {code for site in changed for code in self._reachable.with_site(site)}
        for code in (*stale, *range(known, len(self._served))):
            self._served[code] = served(self._wanted, self._reachable.sites[code])
        self._cursor = changes.end


def served(wanted: Iterable[WantedVolume], sites: tuple[Site, ...]) -> list[bool]:
    """Which claims get a volume where these sites can be reached; the first takes first."""
    taken: set[str] = set()
    answers = []
    for one in wanted:
        pv = smallest_volume(sites, one, taken)
        answers.append(pv is not None)
        if pv is not None:
            taken.add(pv.name)
    return answers


def makeable(provisioning: Provisioning, cluster: ClusterState) -> NodeSet:
    """The nodes for which a volume could be made."""
    capacity = provisioning.capacity

    def can_make(node: Node) -> bool:
        return provisioning.allowed_on(node) and (
            capacity is None or has_capacity(capacity, node, cluster.storage)
        )

    return cluster.node_sets.where(("makeable", provisioning), can_make)


def served_claims(request: EvaluationRequest) -> list[ServedClaims]:
    """The claims of a pod that open volumes could serve, by class."""
    by_class: dict[str, list[FirstConsumerClaim]] = {}
    for claim in request.requirements.first_consumer:
        if claim.is_unassigned and claim.search:
            by_class.setdefault(claim.search[0], []).append(claim)
    return [ServedClaims(name, claims, request.cluster) for name, claims in by_class.items()]


NAME = "VolumeBinding"
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
NO_SPACE = "node(s) did not have enough free storage"


class VolumeBinding(NodeFilter):
    """Reach of bound volumes and service of unbound claims.

    What a node object alone decides is kept as a set of nodes. Claims that open volumes could serve
    compete for them with pods that are placed elsewhere, and are kept apart; unless volumes are
    reserved for one of them by name, which is rare, and then all of it is worked out anew.
    """

    name = NAME

    def __init__(self, request: EvaluationRequest) -> None:
        self._cluster = request.cluster
        self._requirements = request.requirements
        claims = request.requirements.first_consumer
        self._served = [] if any(one.search_by_name for one in claims) else served_claims(request)
        self.reads = ReadScope.CLUSTER if self._served else ReadScope.NODE
        condition = self._may_be_served if self._served else self._is_served
        key = (NAME, bool(self._served), request.requirements.bound, claims)
        self._nodes = request.cluster.node_sets.where(key, condition)

    @property
    def restricts_nodes(self) -> bool:
        """Of nodes that do not reach what is there already."""
        return True

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes on which all claims are served."""
        passes = self._nodes.mask()
        for claims in self._served:
            passes = passes & claims.mask()
        return passes[rows]

    def refusal(self, slot: int) -> Refusal:
        """What is wrong with the node, in kube-scheduler's order."""
        reasons = tuple(self._reasons(self._cluster.node_at(slot)))
        return Refusal(UNRESOLVABLE, NAME, reasons, out_of_reach=reasons == (UNREACHABLE,))

    def _is_served(self, node: Node) -> bool:
        return not self._reasons(node)

    def _may_be_served(self, node: Node) -> bool:
        """Whether nothing is wrong with a node but, perhaps, its open volumes."""
        settled = [
            claim
            for claim in self._requirements.first_consumer
            if not (claim.search and claim.is_unassigned)
        ]
        return self._reaches(node) and self._unserved(node, settled) is None

    def _reasons(self, node: Node) -> list[str]:
        reasons = [] if self._reaches(node) else [UNREACHABLE]
        problem = self._unserved(node, self._to_provision(node))
        return [*reasons, problem] if problem else reasons

    def _reaches(self, node: Node) -> bool:
        csinode = self._cluster.csinodes.get(node.name)
        return all(reach.includes(node, csinode) for reach in self._requirements.bound)

    def _unserved(self, node: Node, to_provision: list[FirstConsumerClaim]) -> str | None:
        """Why the unbound claims cannot be served on a node, if they cannot."""
        first_consumer = self._requirements.first_consumer
        if any(claim.selected_node not in (None, node.name) for claim in first_consumer):
            return NOTHING_TO_BIND
        for claim in to_provision:
            if not claim.provisioning.allowed_on(node):
                return NOTHING_TO_BIND
            capacity = claim.provisioning.capacity
            if capacity and not has_capacity(capacity, node, self._cluster.storage):
                return NO_SPACE
        return None

    def _to_provision(self, node: Node) -> list[FirstConsumerClaim]:
        """The claims that no existing volume serves, first those that are selected for a node."""
        claims = self._requirements.first_consumer
        found = find_volumes(claims, node, self._cluster.storage)
        unserved = [claim for claim, pv in zip(claims, found, strict=True) if pv is None]
        return sorted(unserved, key=lambda claim: claim.is_unassigned)


def refusal_before_nodes(arrival: PreFilterInput) -> Refusal | None:
    """Refuse a claim that cannot be used at all, or that is unbound and binds immediately."""
    for claim in arrival.claims:
        problem = _problem(claim, arrival.pod)
        if problem:
            return Refusal.unresolvable(NAME, problem)
    if any(claim.facts is not None and claim.facts.is_immediate for claim in arrival.claims):
        return Refusal.unresolvable(NAME, IMMEDIATE)
    return None


def _problem(named: PodClaim, pod: Pod) -> str:
    """Why a claim cannot be used at all; empty if it can."""
    if named.facts is None:
        name = named.key.partition("/")[2]
        what = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        return f'{what} "{name}"'
    claim = named.facts.claim
    if claim.status.phase == LOST:
        lost = claim.spec.volume_name
        return (
            f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{lost}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if belongs_to_another_pod(named.volume, claim, pod):
        return f"PVC {named.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod has claims."""
    requirements = request.requirements
    return VolumeBinding(request) if requirements.bound or requirements.first_consumer else None


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod no longer holds what was assumed for its claims: they are not bound yet."""
    pod = removed_pod(event)
    known = pending.cluster.storage.claims
    claims = claims_of(pod) if pod is not None else ()
    return any(key in known and not known[key].spec.volume_name for key in claims)


HINTS: Hints = {
    Node: is_new_or_relabelled,
    Pod: _pod_may_help,
    PersistentVolumeClaim: any_change,
    PersistentVolume: any_change,
    StorageClass: any_change,
    CSINode: any_change,
    CSIDriver: any_change,
    CSIStorageCapacity: any_change,
}
"""Whatever claims and volumes are about; a claim that goes may leave its volume to another."""
