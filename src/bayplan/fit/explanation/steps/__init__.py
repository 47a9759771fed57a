"""The steps that could lift a refusal, by the plugin that refused.

A proposal looks at a trial and gives steps; whether a step helps is found out by taking it in a
fork, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext

from bayplan.fit.explanation.fix import Step
from bayplan.fit.explanation.steps.claims import claim_steps
from bayplan.fit.explanation.steps.labels import (
    change_selector,
    drop_node_affinity,
    label_node,
    without_node_affinity,
)
from bayplan.fit.explanation.steps.limits import detach_volumes, install_driver, raise_limit
from bayplan.fit.explanation.steps.moves import (
    move_a_pod,
    move_blocker,
    move_counted,
    stop_blocker,
    stop_claim_user,
)
from bayplan.fit.explanation.steps.requests import ask_for_less, drop_host_ports
from bayplan.fit.explanation.steps.rules import (
    count_fewer_domains,
    drop_affinity,
    label_topology,
    relax_spread,
)
from bayplan.fit.explanation.steps.taints import clear_taints, tolerate, uncordon
from bayplan.fit.explanation.steps.volumes import add_volume, forget_selected_node
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.node_affinity.filter import CONFLICT
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

Proposal = Callable[[Trial], Iterable[Step]]

BY_PLUGIN: Mapping[str, tuple[Proposal, ...]] = {
    "NodeUnschedulable": (uncordon,),
    "TaintToleration": (tolerate, clear_taints),
    "PreFilterResult": (drop_node_affinity,),
    "NodeAffinity": (label_node, change_selector, drop_node_affinity),
    "NodePorts": (move_a_pod, drop_host_ports),
    "NodeResourcesFit": (ask_for_less, move_a_pod),
    "VolumeRestrictions": (move_a_pod, stop_claim_user),
    "NodeVolumeLimits": (install_driver, detach_volumes, move_a_pod, raise_limit),
    "VolumeBinding": (forget_selected_node, add_volume),
    "PodTopologySpread": (label_topology, count_fewer_domains, move_counted, relax_spread),
    "InterPodAffinity": (label_topology, move_blocker, stop_blocker, drop_affinity),
}

_TRYING = (
    move_a_pod,
    move_blocker,
    move_counted,
    count_fewer_domains,
    relax_spread,
    drop_affinity,
)
"""Proposals that try what they propose; the others read what is short."""


def steps_for(trial: Trial) -> list[Step]:
    """Every step that might lift a refusal."""
    proposals = BY_PLUGIN.get(trial.refusal.plugin, ())
    return [step for propose in proposals for step in _proposed(propose, trial)]


def _proposed(propose: Proposal, trial: Trial) -> list[Step]:
    with nullcontext() if propose in _TRYING else trial.as_refused():
        return list(propose(trial))


def steps_before_nodes(snapshot: Snapshot, pod: Pod) -> list[Step]:
    """Every step that might help a pod that is refused before any node is looked at."""
    refusal = snapshot.decide(pod).refused_before
    if refusal is not None and CONFLICT in refusal.reasons:
        return [without_node_affinity(pod)]
    return list(claim_steps(snapshot, pod))
