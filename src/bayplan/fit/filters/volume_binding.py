"""VolumeBinding: bound volumes must be reachable, and unbound claims must be servable on the
node.
"""

from __future__ import annotations

from bayplan.fit.filters.base import Arrival, Filter, Question, Reads
from bayplan.fit.needs.claims import LOST
from bayplan.fit.needs.pods import PodClaim, is_anothers
from bayplan.fit.refusal import UNRESOLVABLE, Refusal
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.volumes.binding import FirstConsumerClaim, find_volume, has_capacity
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

NAME = "VolumeBinding"
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
NO_SPACE = "node(s) did not have enough free storage"


class VolumeBinding:
    """Reach of bound volumes and service of unbound claims."""

    name = NAME
    reads = Reads.NODE

    def __init__(self, question: Question) -> None:
        self._cluster = question.cluster
        self._needs = question.needs
        key = (NAME, question.needs.bound, question.needs.first_consumer)
        self._nodes = question.cluster.node_sets.where(key, lambda node: not self._reasons(node))

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes on which all claims are served."""
        return self._nodes.mask()[rows]

    def refusal(self, slot: int) -> Refusal:
        """What is wrong with the node, in kube-scheduler's order."""
        return Refusal(UNRESOLVABLE, NAME, tuple(self._reasons(self._cluster.node_at(slot))))

    def _reasons(self, node: Node) -> list[str]:
        csinode = self._cluster.csinodes.get(node.name)
        reachable = all(reach.includes(node, csinode) for reach in self._needs.bound)
        reasons = [] if reachable else [UNREACHABLE]
        problem = self._unserved(node)
        return [*reasons, problem] if problem else reasons

    def _unserved(self, node: Node) -> str | None:
        """Why the unbound claims cannot be served on a node, if they cannot."""
        first_consumer = self._needs.first_consumer
        if any(claim.selected_node not in (None, node.name) for claim in first_consumer):
            return NOTHING_TO_BIND
        for claim in self._to_provision(node):
            if not claim.provisioning.allowed_on(node):
                return NOTHING_TO_BIND
            capacity = claim.provisioning.capacity
            if capacity and not has_capacity(capacity, node, self._cluster.storage):
                return NO_SPACE
        return None

    def _to_provision(self, node: Node) -> list[FirstConsumerClaim]:
        """The claims that no existing volume serves; the smallest is handed a volume first."""
        taken: set[str] = set()
        settled = [claim for claim in self._needs.first_consumer if claim.selected_node is not None]
        unsettled = [claim for claim in self._needs.first_consumer if claim.selected_node is None]
        return settled + [
            claim
            for claim in unsettled
            if not claim.search or not self._takes(claim.search[0], node, taken)
        ]

    def _takes(self, claim_key: str, node: Node, taken: set[str]) -> bool:
        storage = self._cluster.storage
        pv = find_volume(storage.claims[claim_key], node, storage, taken)
        if pv is None:
            return False
        taken.add(pv.name)
        return True


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
    needs = question.needs
    return VolumeBinding(question) if needs.bound or needs.first_consumer else None
