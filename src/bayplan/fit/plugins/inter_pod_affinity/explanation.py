"""The pods that are in the way or that are missing, and what would lift a refusal: move or stop the
one that is in the way, or drop an affinity that cannot be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.domains import label_topology, lacks_by_domain
from bayplan.fit.plugins.inter_pod_affinity.filter import NOT_NEAR, InterPodAffinity
from bayplan.fit.plugins.inter_pod_affinity.neighbours import (
    Blocker,
    blockers,
    unmet_affinity,
)
from bayplan.fit.plugins.moves import is_above
from bayplan.fit.plugins.trial import Explaining, Lacks, Proposal, Trial
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotArray
from bayplan.kube.pods import Affinity, Pod, PodAffinityTerm

LEAST_COST = 3.0
_SEVERAL_IN_THE_WAY = 2.0
MOST_PODS = 3


def affinity_details(trial: Trial) -> list[str]:
    """The pods that keep this one off, or whom it does not meet."""
    if NOT_NEAR in trial.refusal.reasons:
        return _missing(trial)
    found = blockers(trial)
    said = [_in_the_way(trial, one) for one in found[:MOST_PODS]]
    more = len(found) - len(said)
    return [*said, f"and {more} more"] if more else said


def _missing(trial: Trial) -> list[str]:
    said: list[str] = []
    for unmet in unmet_affinity(trial):
        key, pods = unmet.term.topology_key, selected(unmet.term)
        if unmet.domain is None:
            said.append(f"it has no label {key}, over which pods with {pods} are to be near")
            continue
        where = ", ".join(unmet.domains[:MOST_PODS]) if unmet.domains else "nowhere"
        more = len(unmet.domains) - MOST_PODS
        rest = f" and {more} more" if more > 0 else ""
        said.append(
            f"no pod with {pods} is in {key}={unmet.domain}; there are such in {where}{rest}"
        )
    return said


def _in_the_way(trial: Trial, blocker: Blocker) -> str:
    pod, key = blocker.record.pod, blocker.topology_key
    domain = trial.node.metadata.labels.get(key)
    whose = "this pod keeps away from it" if blocker.own_rule else "it keeps this pod away"
    on = "here" if blocker.record.node == trial.name else f"on node {blocker.record.node}"
    return f"pod {pod.key} is {on}, in {key}={domain}, and {whose}"


# -- what is proposed ----------------------------------------------------------------------------


def move_blocker(trial: Trial) -> Iterable[Step]:
    """The one pod that keeps this one off, to a node where neither minds the other."""
    return trial.move_one_of([one.record for one in _the_one_blocker(trial)])


def stop_blocker(trial: Trial) -> Iterable[Step]:
    """Delete the one pod that keeps this one off."""
    for blocker in _the_one_blocker(trial):
        pod = blocker.record.pod
        whose = "this pod keeps away from it" if blocker.own_rule else "it keeps this pod away"
        text = f"delete pod {pod.key} ({whose} over {blocker.topology_key})"
        cost = 5.5 if is_above(trial, pod.key) else 4.5
        yield Step(FixKind.STOP_POD, text, cost, trial.pod, deletes=((Pod, pod.key),))


def _the_one_blocker(trial: Trial) -> Sequence[Blocker]:
    """The pod that keeps the pod off, if it is one, and if it can be asked to leave."""
    found = blockers(trial)
    return found if len(found) == 1 and trial.may_move(found[0].record.pod) else ()


def drop_affinity(trial: Trial) -> Iterable[Step]:
    """Drop each required (anti-)affinity term in turn."""
    affinity = trial.pod.spec.affinity
    if affinity is None:
        return
    together = affinity.pod_affinity.required if affinity.pod_affinity else []
    apart = affinity.pod_anti_affinity.required if affinity.pod_anti_affinity else []
    for term in together:
        yield _dropped(trial.pod, affinity, term, anti=False)
    for term in apart:
        yield _dropped(trial.pod, affinity, term, anti=True)


def _dropped(pod: Pod, affinity: Affinity, term: PodAffinityTerm, *, anti: bool) -> Step:
    name = "pod_anti_affinity" if anti else "pod_affinity"
    rules = affinity.pod_anti_affinity if anti else affinity.pod_affinity
    if rules is None:
        raise LookupError("the term is not of this pod")
    left = replace(rules, required=[one for one in rules.required if one is not term])
    changed = replace(affinity, **{name: left})
    return Step(
        FixKind.DROP_AFFINITY,
        f"drop the required {'anti-' if anti else ''}affinity to pods with {selected(term)}"
        f" over {term.topology_key}",
        5.0,
        replace(pod, spec=replace(pod.spec, affinity=changed)),
    )


def selected(term: PodAffinityTerm) -> str:
    """The pods that a term picks, as a person would say it."""
    selector = term.label_selector
    if selector is None:
        return "any labels"
    said = [f"{key}={value}" for key, value in selector.match_labels.items()]
    said += [f"{e.key} {e.operator} {e.values}" for e in selector.match_expressions]
    return ", ".join(said) or "any labels"


def _lacking(one: Filter, pod: Pod, cluster: Cluster, slots: SlotArray) -> Lacks:
    """It costs more where several pods are in the way."""
    lacks = lacks_by_domain(one, pod, cluster, slots, LEAST_COST)
    several = isinstance(one, InterPodAffinity) and one.keeping_off(slots) > 1
    return Lacks(lacks.costs + _SEVERAL_IN_THE_WAY * several, lacks.likes)


EXPLAINING = Explaining(
    details=affinity_details,
    proposals=(
        Proposal(label_topology),
        Proposal(move_blocker, tries=True),
        Proposal(stop_blocker),
        Proposal(drop_affinity, tries=True),
    ),
    least_cost=LEAST_COST,
    lacking=_lacking,
)
