"""VolumeZone: a bound volume's zone and region labels must suit the node, if the node has any."""

from __future__ import annotations

from collections.abc import Collection

from bayplan.fit.decision import Refusal
from bayplan.fit.plugins.base import EvaluationRequest, Filter, NodeSetFilter, PreFilterInput
from bayplan.fit.plugins.explanation import Explainer, Trial
from bayplan.fit.plugins.hints import (
    ClusterEvent,
    Hints,
    UnschedulablePod,
    any_change,
    is_new_or_relabelled,
    is_own_claim,
)
from bayplan.fit.plugins.plugin import FILTERING, Cause, SchedulerPlugin
from bayplan.fit.plugins.volume_binding.claims import claim_steps
from bayplan.fit.plugins.volume_binding.explanation import IN_ZONE_OF_VOLUMES
from bayplan.fit.volumes.topology import ZONE_LABELS, zone_requirements
from bayplan.kube.nodes import Node
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

NAME = "VolumeZone"
REASON = "node(s) had no available volume zone"


def refusal_before_nodes(arrival: PreFilterInput) -> Refusal | None:
    """A claim that is bound to a volume that is not there."""
    for claim in arrival.claims:
        if claim.facts is not None and claim.facts.lost_volume:
            lost = claim.facts.lost_volume
            return Refusal.unresolvable(NAME, f'persistentvolume "{lost}" not found')
    return None


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if a bound volume has such labels."""
    zones = request.requirements.zones
    if not zones:
        return None

    def suits(node: Node) -> bool:
        if not any(label in node.metadata.labels for label in ZONE_LABELS):
            return True
        return all(zone.met_by(node) for zone in zones)

    nodes = request.cluster.node_sets.where((NAME, zones), suits)
    return NodeSetFilter(NAME, nodes, REASON)


def _volume_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a volume was added or changed that one of the pod's claims names."""
    claims = pending.cluster.storage.claims
    named = {claims[key].spec.volume_name for key in pending.claims if key in claims}
    return event.after is not None and event.key in named


_HINTS: Hints = {
    Node: is_new_or_relabelled,
    PersistentVolumeClaim: is_own_claim,
    PersistentVolume: _volume_may_help,
    StorageClass: any_change,
}


def _details(trial: Trial) -> list[str]:
    """Describe the claims whose volume is labelled with another zone."""
    return [
        f"claim {claim.key} is bound to volume {pv.name},"
        f" which has label {need.label}={'__'.join(sorted(need.values))}"
        for claim, pv in trial.cluster.storage.bound_volumes(trial.pod)
        for need in zone_requirements(pv)
        if not need.met_by(trial.node)
    ]


def _sets_apart(event: ClusterEvent) -> Collection[str] | None:
    """Return None for a volume: which claims name it is unknown."""
    return None if event.kind is PersistentVolume else ()


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=FILTERING,
    node_fields=("metadata.labels",),
    cause=Cause.VOLUMES,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    hints=_HINTS,
    sets_apart=_sets_apart,
    explainer=Explainer(details=_details, new_node=IN_ZONE_OF_VOLUMES),
    node_labels=lambda _pod, _cluster: frozenset(ZONE_LABELS),
    steps_before_nodes=claim_steps,
)
