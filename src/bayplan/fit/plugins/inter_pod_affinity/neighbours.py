"""The pods that affinity is about: who keeps a pod off a node, and whom it does not meet there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.fit.plugins.domains import pods_in_domain
from bayplan.fit.plugins.inter_pod_affinity.filter import domain_counts, matching_domains
from bayplan.fit.plugins.trial import Trial
from bayplan.fit.signatures.terms import OwnedTerm, PlacedTerm, TermKind
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import PodAffinityTerm


class Blocker(NamedTuple):
    """A running pod that keeps a waiting one off a node."""

    record: PodRecord
    topology_key: str
    own_rule: bool
    """Whether the rule is the waiting pod's; it is the running one's otherwise."""


class Unmet(NamedTuple):
    """A term of required affinity that finds nobody in a node's domain."""

    term: PodAffinityTerm
    domain: str | None
    """The node's domain; None if it has no such label."""
    domains: list[str]
    """The domains in which there is a pod that all terms pick."""


def blockers(trial: Trial) -> list[Blocker]:
    """The pods in the node's domains that the pod must avoid, or that must avoid it."""
    found: dict[str, Blocker] = {}
    for one in (*_avoided(trial), *_avoiding(trial)):
        found.setdefault(one.record.key, one)
    return [found[key] for key in sorted(found)]


def _avoided(trial: Trial) -> Iterator[Blocker]:
    """Those that the pod's own rules are about."""
    cluster = trial.cluster
    known = cluster.namespaces
    for placed in cluster.signatures.of(trial.pod).terms.anti_affinity:

        def picked(record: PodRecord, placed: PlacedTerm = placed) -> bool:
            return placed.term.picks(record.pod.namespace, record.pod.metadata.labels, known)

        for record in pods_in_domain(trial, placed.topology_key, placed, picked):
            yield Blocker(record, placed.topology_key, own_rule=True)


def _avoiding(trial: Trial) -> Iterator[Blocker]:
    """Those whose rules are about the pod."""
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
    """The terms of required affinity that find nobody where the node is."""
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
