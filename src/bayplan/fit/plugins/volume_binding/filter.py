"""VolumeBinding: bound volumes must be reachable, and unbound claims must be servable on the
node.
"""

from __future__ import annotations

from bayplan.fit.events import Event
from bayplan.fit.plugins.base import Arrival, Filter, NodeFilter, Question, Reads
from bayplan.fit.plugins.hints import (
    Hints,
    Waiting,
    any_change,
    arrival_or_labels,
    gone,
)
from bayplan.fit.plugins.volume_binding.open_volumes import served_claims
from bayplan.fit.refusal import UNRESOLVABLE, Refusal
from bayplan.fit.requirements.claims import LOST
from bayplan.fit.requirements.pods import PodClaim, is_anothers
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.volumes.binding import FirstConsumerClaim, find_volumes, has_capacity
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

    def __init__(self, question: Question) -> None:
        self._cluster = question.cluster
        self._requirements = question.requirements
        claims = question.requirements.first_consumer
        self._served = [] if any(one.search_by_name for one in claims) else served_claims(question)
        self.reads = Reads.CLUSTER if self._served else Reads.NODE
        condition = self._may_be_served if self._served else self._is_served
        key = (NAME, bool(self._served), question.requirements.bound, claims)
        self._nodes = question.cluster.node_sets.where(key, condition)

    @property
    def chooses(self) -> bool:
        """Of nodes that do not reach what is there already."""
        return True

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes on which all claims are served."""
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
            if not (claim.search and claim.chooses)
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
        return sorted(unserved, key=lambda claim: claim.chooses)


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """A claim that cannot be used at all, or that nobody binds for the pod's sake."""
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
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        return f'{waiting} "{name}"'
    claim = named.facts.claim
    if claim.status.phase == LOST:
        lost = claim.spec.volume_name
        return (
            f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{lost}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if is_anothers(named.volume, claim, pod):
        return f"PVC {named.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod has claims."""
    needs = question.requirements
    return VolumeBinding(question) if needs.bound or needs.first_consumer else None


def _pod_may_help(waiting: Waiting, event: Event) -> bool:
    """A pod no longer holds what was assumed for its claims: they are not bound yet."""
    pod = gone(event)
    known = waiting.cluster.storage.claims
    claims = claims_of(pod) if pod is not None else ()
    return any(key in known and not known[key].spec.volume_name for key in claims)


HINTS: Hints = {
    Node: arrival_or_labels,
    Pod: _pod_may_help,
    PersistentVolumeClaim: any_change,
    PersistentVolume: any_change,
    StorageClass: any_change,
    CSINode: any_change,
    CSIDriver: any_change,
    CSIStorageCapacity: any_change,
}
"""Whatever claims and volumes are about; a claim that goes may leave its volume to another."""
