"""The steps that could lift a refusal: those that the plugin which refused proposes.

A proposal looks at a trial and gives steps; whether a step helps is found out by taking it in a
fork, not here.
"""

from __future__ import annotations

from contextlib import nullcontext

from bayplan.fit.explanation.trial import SnapshotTrial
from bayplan.fit.fixes import Step
from bayplan.fit.plugins.registry import BY_NAME, explaining
from bayplan.fit.plugins.trial import Proposal
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod


def steps_for(trial: SnapshotTrial) -> list[Step]:
    """Every step that might lift a refusal."""
    proposals = explaining(trial.refusal.plugin).proposals
    return [step for proposal in proposals for step in _proposed(proposal, trial)]


def _proposed(proposal: Proposal, trial: SnapshotTrial) -> list[Step]:
    with nullcontext() if proposal.tries else trial.as_refused():
        return list(proposal.propose(trial))


def steps_before_nodes(snapshot: Snapshot, pod: Pod) -> list[Step]:
    """Every step that might help a pod that is refused before any node is looked at."""
    refusal = snapshot.evaluation(pod)
    plugin = BY_NAME.get(refusal.plugin) if isinstance(refusal, Refusal) else None
    propose = plugin.steps_before_nodes if plugin is not None else None
    return list(propose(snapshot.cluster, pod)) if propose is not None else []
