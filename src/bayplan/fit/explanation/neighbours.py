"""The pods that rules between pods are about: who keeps a pod off a node, whom it does not meet
there, and whom a spread constraint counts in the node's domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bayplan.fit.explanation.trial import Trial
from bayplan.fit.filters.inter_pod_affinity import InterPodAffinity, domain_counts
from bayplan.fit.filters.pod_topology_spread import PodTopologySpread, Spread
from bayplan.fit.filters.spreading import pods_to_spread
from bayplan.fit.objects import shown
from bayplan.fit.shapes.terms import TermKind
from bayplan.fit.state.domains import DomainCounts
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod, PodAffinityTerm


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
    interpod = trial.filter(InterPodAffinity)
    found: dict[str, Blocker] = {}
    for record, key, own in _rivals(trial) if interpod is not None else ():
        found.setdefault(record.key, Blocker(record, key, own))
    return [found[key] for key in sorted(found)]


def _rivals(trial: Trial) -> Iterator[tuple[PodRecord, str, bool]]:
    cluster = trial.snapshot.cluster
    shape, known = cluster.shapes.of(trial.pod), cluster.namespaces
    for placed in shape.terms.anti_affinity:
        for record in _in_domain(trial, placed.topology_key):
            if placed.term.picks(record.pod.namespace, record.pod.metadata.labels, known):
                yield record, placed.topology_key, True
    labels = trial.pod.metadata.labels
    keeping = [
        one.owned
        for one in cluster.terms.concerning(shape.namespace, labels)
        if one.owned.kind is TermKind.KEEPS_OUT and one.counts.total
    ]
    for owned in keeping:
        for record in _in_domain(trial, owned.topology_key):
            if owned in record.shape.terms.owned:
                yield record, owned.topology_key, False


def unmet_affinity(trial: Trial) -> list[Unmet]:
    """The terms of required affinity that find nobody where the node is."""
    cluster = trial.snapshot.cluster
    terms = cluster.shapes.of(trial.pod).terms.affinity
    affinity = trial.pod.spec.affinity
    written = affinity.pod_affinity.required if affinity and affinity.pod_affinity else []
    every = tuple(placed.term for placed in terms)
    found: list[Unmet] = []
    for placed, term in zip(terms, written, strict=False):
        counts = domain_counts(placed, every, cluster)
        if not counts.at(trial.slot):
            domain = trial.node.metadata.labels.get(term.topology_key)
            found.append(Unmet(term, domain, _matching_domains(counts)))
    return found


def _matching_domains(counts: DomainCounts) -> list[str]:
    codes = np.flatnonzero(counts.by_domain()[: counts.topology.size]).tolist()
    return sorted(counts.topology.values[code] for code in codes)


def failing_spread(trial: Trial) -> list[Spread]:
    """The spread constraints that do not hold on the node."""
    spreading = trial.filter(PodTopologySpread)
    return spreading.failing(trial.slot) if spreading is not None else []


def counted_in_domain(trial: Trial, spread: Spread) -> list[Pod]:
    """The pods in the node's domain that a constraint counts."""
    cluster = trial.snapshot.cluster
    match = pods_to_spread(spread.constraint.selector, cluster.shapes.of(trial.pod))
    return [
        shown(record)
        for record in _in_domain(trial, spread.constraint.topology_key)
        if match.picks(
            record.pod.namespace,
            record.pod.metadata.labels,
            cluster.namespaces,
            terminating=record.terminating,
        )
    ]


def _in_domain(trial: Trial, topology_key: str) -> Iterator[PodRecord]:
    """The pods on nodes of the node's domain."""
    cluster = trial.snapshot.cluster
    value = trial.node.metadata.labels.get(topology_key)
    if value is None:
        return
    for slot in cluster.topology(topology_key).slots_of(value):
        yield from cluster.pods.by_node.get(cluster.slots.names[slot], {}).values()
