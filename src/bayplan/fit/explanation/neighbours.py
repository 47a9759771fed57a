"""The pods that rules between pods are about: who keeps a pod off a node, whom it does not meet
there, and whom a spread constraint counts in the node's domain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

import numpy as np

from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.inter_pod_affinity.filter import domain_counts
from bayplan.fit.plugins.pod_topology_spread.counts import pods_to_spread
from bayplan.fit.plugins.pod_topology_spread.filter import PodTopologySpread, Spread
from bayplan.fit.signatures.signature import HostPort
from bayplan.fit.signatures.terms import OwnedTerm, PlacedTerm, TermKind
from bayplan.fit.state.node_usage import clash
from bayplan.fit.state.pods import PodRecord, placed_pod
from bayplan.fit.state.topology import DomainCounts
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


def topology_keys(pod: Pod) -> frozenset[str]:
    """The labels that say which domain a node is in, to the pod's own rules."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = (term.topology_key for side in sides if side for term in side.required)
    spread = (one.topology_key for one in pod.spec.topology_spread_constraints)
    return frozenset((*terms, *spread))


def blockers(trial: Trial) -> list[Blocker]:
    """The pods in the node's domains that the pod must avoid, or that must avoid it."""
    found: dict[str, Blocker] = {}
    for one in (*_avoided(trial), *_avoiding(trial)):
        found.setdefault(one.record.key, one)
    return [found[key] for key in sorted(found)]


def _avoided(trial: Trial) -> Iterator[Blocker]:
    """Those that the pod's own rules are about."""
    cluster = trial.snapshot.cluster
    known = cluster.namespaces
    for placed in cluster.shapes.of(trial.pod).terms.anti_affinity:

        def picked(record: PodRecord, placed: PlacedTerm = placed) -> bool:
            return placed.term.picks(record.pod.namespace, record.pod.metadata.labels, known)

        for record in _in_domain(trial, placed.topology_key, placed, picked):
            yield Blocker(record, placed.topology_key, own_rule=True)


def _avoiding(trial: Trial) -> Iterator[Blocker]:
    """Those whose rules are about the pod."""
    cluster = trial.snapshot.cluster
    for one in cluster.terms.concerning(trial.pod.namespace, trial.pod.metadata.labels):
        owned = one.owned
        if owned.kind is not TermKind.KEEPS_OUT or not one.counts.at(trial.slot):
            continue

        def keeps_out(record: PodRecord, owned: OwnedTerm = owned) -> bool:
            return owned in record.shape.terms.owned

        for record in _in_domain(trial, owned.topology_key, owned, keeps_out):
            yield Blocker(record, owned.topology_key, own_rule=False)


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


def taken_ports(trial: Trial) -> list[tuple[HostPort, str]]:
    """The host ports that the pod wants and another has on the node, with that one's key."""
    cluster = trial.snapshot.cluster
    wanted = cluster.shapes.of(trial.pod).ports
    return [
        (port, record.key)
        for record in cluster.pods.by_node.get(trial.name, {}).values()
        for port in wanted
        if any(clash(port, held) for held in record.shape.ports)
    ]


def failing_spread(trial: Trial) -> list[Spread]:
    """The spread constraints that do not hold on the node."""
    spreading = trial.filter(PodTopologySpread)
    return spreading.failing(trial.slot) if spreading is not None else []


def counted_in_domain(trial: Trial, spread: Spread) -> list[Pod]:
    """The pods in the node's domain that a constraint counts."""
    cluster = trial.snapshot.cluster
    match = pods_to_spread(spread.constraint.selector, cluster.shapes.of(trial.pod))

    def counted(record: PodRecord) -> bool:
        meta, terminating = record.pod.metadata, record.terminating
        return match.picks(meta.namespace, meta.labels, cluster.namespaces, terminating=terminating)

    key = spread.constraint.topology_key
    return [placed_pod(record) for record in _in_domain(trial, key, match, counted)]


def _in_domain(
    trial: Trial, topology_key: str, rule: Hashable, is_meant: Callable[[PodRecord], bool]
) -> list[PodRecord]:
    """The pods that a rule means on nodes of the node's domain."""
    cluster = trial.snapshot.cluster
    value = trial.node.metadata.labels.get(topology_key)

    def look() -> list[PodRecord]:
        slots = cluster.topology(topology_key).slots_of(value) if value is not None else ()
        there = (cluster.pods.by_node.get(cluster.slots.names[slot], {}) for slot in slots)
        return [record for records in there for record in records.values() if is_meant(record)]

    return trial.once(("domain", topology_key, value, rule), look)
