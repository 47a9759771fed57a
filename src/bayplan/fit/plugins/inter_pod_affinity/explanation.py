"""The pods that are in the way or that are missing, and what would lift a refusal: move or stop the
one that is in the way, or drop an affinity that cannot be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.explanation import (
    Explainer,
    Proposal,
    RepairEstimate,
    Trial,
    has_higher_priority,
    label_topology,
    pods_in_domain,
    repair_by_domain,
)
from bayplan.fit.plugins.inter_pod_affinity.filter import (
    NOT_NEAR,
    InterPodAffinity,
    domain_counts,
    matching_domains,
)
from bayplan.fit.signatures.terms import OwnedTerm, PlacedTerm, TermKind
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Affinity, Pod, PodAffinityTerm


class Blocker(NamedTuple):
    """A running pod that blocks a pending one on a node."""

    record: PodRecord
    topology_key: str
    own_rule: bool
    """Whether the rule is the pending pod's; it is the running one's otherwise."""


class Unmet(NamedTuple):
    """A term of required affinity that matches no pod in a node's domain."""

    term: PodAffinityTerm
    domain: str | None
    """The node's domain; None if it has no such label."""
    domains: list[str]
    """The domains in which there is a pod that all terms pick."""


def blockers(trial: Trial) -> list[Blocker]:
    """Return the pods in the node's domains that block the pod by anti-affinity."""
    found: dict[str, Blocker] = {}
    for one in (*_avoided(trial), *_avoiding(trial)):
        found.setdefault(one.record.key, one)
    return [found[key] for key in sorted(found)]


def _avoided(trial: Trial) -> Iterator[Blocker]:
    """Yield the pods that the pod's own anti-affinity selects."""
    cluster = trial.cluster
    known = cluster.namespaces
    for placed in cluster.signatures.of(trial.pod).terms.anti_affinity:

        def picked(record: PodRecord, placed: PlacedTerm = placed) -> bool:
            return placed.term.picks(record.pod.namespace, record.pod.metadata.labels, known)

        for record in pods_in_domain(trial, placed.topology_key, placed, picked):
            yield Blocker(record, placed.topology_key, own_rule=True)


def _avoiding(trial: Trial) -> Iterator[Blocker]:
    """Yield the pods whose anti-affinity selects the pod."""
    cluster = trial.cluster
    for one in cluster.terms.concerning(trial.pod.namespace, trial.pod.metadata.labels):
        owned = one.owned
        if owned.kind is not TermKind.KEEPS_OUT or not one.counts.at(trial.slot):
            continue

        def keeps_out(record: PodRecord, owned: OwnedTerm = owned) -> bool:
            return owned in record.signature.terms.owned

        for record in pods_in_domain(trial, owned.topology_key, owned, keeps_out):
            yield Blocker(record, owned.topology_key, own_rule=False)


def unmet_affinity(trial: Trial) -> list[Unmet]:
    """Return the terms of required affinity that match no pod in the node's domain."""
    cluster = trial.cluster
    terms = cluster.signatures.of(trial.pod).terms.affinity
    affinity = trial.pod.spec.affinity
    written = affinity.pod_affinity.required if affinity and affinity.pod_affinity else []
    every = tuple(placed.term for placed in terms)
    found: list[Unmet] = []
    for placed, term in zip(terms, written, strict=False):
        counts = domain_counts(placed, every, cluster)
        if not counts.at(trial.slot):
            domain = trial.node.metadata.labels.get(term.topology_key)
            found.append(Unmet(term, domain, matching_domains(counts)))
    return found


# -- what is told ----------------------------------------------------------------------------------


LEAST_COST = 3.0
_SEVERAL_IN_THE_WAY = 2.0
MOST_PODS = 3


def affinity_details(trial: Trial) -> list[str]:
    """Describe the pods that block this one, or the terms that match no pod."""
    if NOT_NEAR in trial.refusal.reasons:
        return _missing(trial)
    found = blockers(trial)
    described = [_in_the_way(trial, one) for one in found[:MOST_PODS]]
    more = len(found) - len(described)
    return [*described, f"and {more} more"] if more else described


def _missing(trial: Trial) -> list[str]:
    described: list[str] = []
    for unmet in unmet_affinity(trial):
        key, pods = unmet.term.topology_key, describe_selector(unmet.term)
        if unmet.domain is None:
            described.append(f"it has no label {key}, over which pods with {pods} are to be near")
            continue
        where = ", ".join(unmet.domains[:MOST_PODS]) if unmet.domains else "nowhere"
        more = len(unmet.domains) - MOST_PODS
        rest = f" and {more} more" if more > 0 else ""
        described.append(
            f"no pod with {pods} is in {key}={unmet.domain}; there are such in {where}{rest}"
        )
    return described


def _in_the_way(trial: Trial, blocker: Blocker) -> str:
    pod, key = blocker.record.pod, blocker.topology_key
    domain = trial.node.metadata.labels.get(key)
    whose = "this pod keeps away from it" if blocker.own_rule else "it keeps this pod away"
    on = "here" if blocker.record.node == trial.name else f"on node {blocker.record.node}"
    return f"pod {pod.key} is {on}, in {key}={domain}, and {whose}"


# -- what is proposed ----------------------------------------------------------------------------


def move_blocker(trial: Trial) -> Iterable[Step]:
    """Propose to move the one pod that blocks this one."""
    return trial.move_one([one.record for one in _the_one_blocker(trial)])


def stop_blocker(trial: Trial) -> Iterable[Step]:
    """Propose to delete the one pod that blocks this one."""
    for blocker in _the_one_blocker(trial):
        pod = blocker.record.pod
        whose = "this pod keeps away from it" if blocker.own_rule else "it keeps this pod away"
        text = f"delete pod {pod.key} ({whose} over {blocker.topology_key})"
        cost = 5.5 if has_higher_priority(trial, pod.key) else 4.5
        yield Step(FixKind.STOP_POD, text, cost, trial.pod, deletes=((Pod, pod.key),))


def _the_one_blocker(trial: Trial) -> Sequence[Blocker]:
    """Return the pod that blocks this one, if it is only one and can be moved."""
    found = blockers(trial)
    return found if len(found) == 1 and trial.can_move(found[0].record.pod) else ()


def drop_affinity(trial: Trial) -> Iterable[Step]:
    """Propose to drop each required (anti-)affinity term in turn."""
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
        f"drop the required {'anti-' if anti else ''}affinity"
        f" to pods with {describe_selector(term)} over {term.topology_key}",
        5.0,
        replace(pod, spec=replace(pod.spec, affinity=changed)),
    )


def describe_selector(term: PodAffinityTerm) -> str:
    """Describe the pods that a term selects."""
    selector = term.label_selector
    if selector is None:
        return "any labels"
    described = [f"{key}={value}" for key, value in selector.match_labels.items()]
    described += [f"{e.key} {e.operator} {e.values}" for e in selector.match_expressions]
    return ", ".join(described) or "any labels"


def _estimate_repair(
    one: Filter, pod: Pod, cluster: ClusterState, slots: SlotArray
) -> RepairEstimate:
    """Estimate a higher cost where several pods block."""
    repair_estimate = repair_by_domain(one, pod, cluster, slots, LEAST_COST)
    several = isinstance(one, InterPodAffinity) and one.keeping_off(slots) > 1
    return RepairEstimate(
        repair_estimate.costs + _SEVERAL_IN_THE_WAY * several, repair_estimate.groups_by_node
    )


EXPLAINER = Explainer(
    details=affinity_details,
    proposals=(
        Proposal(label_topology),
        Proposal(move_blocker, tries=True),
        Proposal(stop_blocker),
        Proposal(drop_affinity, tries=True),
    ),
    least_cost=LEAST_COST,
    estimate_repair=_estimate_repair,
)
