"""VolumeZone: a bound volume's zone and region labels must suit the node, if the node has any."""

from __future__ import annotations

from collections.abc import Collection

from bayplan.fit.events import Event
from bayplan.fit.plugins.base import Arrival, Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints, Waiting, any_change, arrival_or_labels, own_claim
from bayplan.fit.plugins.plugin import FILTERING, Cause, Plugin
from bayplan.fit.plugins.trial import Explaining, Trial
from bayplan.fit.plugins.volume_binding.claims import claim_steps
from bayplan.fit.plugins.volume_binding.explanation import bound_volumes
from bayplan.fit.refusal import Refusal
from bayplan.fit.volumes.topology import ZONE_LABELS, zone_needs
from bayplan.kube.nodes import Node
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

NAME = "VolumeZone"
REASON = "node(s) had no available volume zone"


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """A claim that is bound to a volume that is not there."""
    for claim in arrival.claims:
        if claim.facts is not None and claim.facts.lost_volume:
            lost = claim.facts.lost_volume
            return Refusal.unresolvable(NAME, f'persistentvolume "{lost}" not found')
    return None


def compile_filter(question: Question) -> Filter | None:
    """The filter, if a bound volume has such labels."""
    zones = question.requirements.zones
    if not zones:
        return None

    def suits(node: Node) -> bool:
        if not any(label in node.metadata.labels for label in ZONE_LABELS):
            return True
        return all(zone.met_by(node) for zone in zones)

    nodes = question.cluster.node_sets.where((NAME, zones), suits)
    return NodeSetFilter(NAME, nodes, REASON)


def _volume_may_help(waiting: Waiting, event: Event) -> bool:
    """A volume came or changed that one of the pod's claims names."""
    claims = waiting.cluster.storage.claims
    named = {claims[key].spec.volume_name for key in waiting.claims if key in claims}
    return event.after is not None and event.key in named


_HINTS: Hints = {
    Node: arrival_or_labels,
    PersistentVolumeClaim: own_claim,
    PersistentVolume: _volume_may_help,
    StorageClass: any_change,
}


def _details(trial: Trial) -> list[str]:
    """The claims whose volume is said to be in another zone."""
    return [
        f"claim {claim.key} is bound to volume {pv.name},"
        f" which has label {need.label}={'__'.join(sorted(need.values))}"
        for claim, pv in bound_volumes(trial)
        for need in zone_needs(pv)
        if not need.met_by(trial.node)
    ]


def _sets_apart(event: Event) -> Collection[str] | None:
    """Which claims name a volume cannot be said."""
    return None if event.kind is PersistentVolume else ()


PLUGIN = Plugin(
    name=NAME,
    points=FILTERING,
    node_fields=("metadata.labels",),
    cause=Cause.VOLUMES,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    hints=_HINTS,
    sets_apart=_sets_apart,
    explaining=Explaining(details=_details),
    steps_before_nodes=claim_steps,
)
