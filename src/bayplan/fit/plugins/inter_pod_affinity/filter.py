"""InterPodAffinity: required affinity and anti-affinity, the pod's own and that of running pods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.plugins.base import EvaluationRequest, Filter, ReadScope
from bayplan.fit.plugins.hints import (
    ClusterEvent,
    Hints,
    UnschedulablePod,
    added_pod,
    any_change,
    removed_pod,
)
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import Namespaces, PlacedTerm, PodMatch, PodTerm, TermKind
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, IntArray, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.state.topology import ABSENT, CountedTerm, DomainCounts
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import Namespace

NAME = "InterPodAffinity"
NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_AWAY = "node(s) didn't match pod anti-affinity rules"
KEPT_OUT = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity(Filter):
    """Required affinity and anti-affinity, the pod's own and that of pods that run."""

    name = NAME
    reads = ReadScope.CLUSTER

    def __init__(self, request: EvaluationRequest) -> None:
        self._request = request
        cluster, terms = request.cluster, request.signature.terms
        near = tuple(placed.term for placed in terms.affinity)
        self._near = [domain_counts(placed, near, cluster) for placed in terms.affinity]
        self._away = [
            domain_counts(placed, (placed.term,), cluster) for placed in terms.anti_affinity
        ]
        self._near_itself = False
        self._counted: list[CountedTerm] = []
        self._generation = (-1, -1)
        self._affecting: dict[object, bool] = {}

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes that no rule refuses."""
        passes = self._near_enough(rows)
        for counts in self._away:
            passes = passes & (counts.at_rows(rows) == 0)
        for counted in self._keeping_out():
            if counted.counts.total:
                passes = passes & (counted.counts.at_rows(rows) == 0)
        return passes

    def refusal(self, slot: int) -> Refusal:
        """Return the first rule that refuses a node, in kube-scheduler's order."""
        if self.unresolvable(np.array([slot], dtype=np.intp))[0]:
            return Refusal.unresolvable(NAME, NOT_NEAR)
        if any(counts.at(slot) for counts in self._away):
            return Refusal.unschedulable(NAME, NOT_AWAY)
        return Refusal.unschedulable(NAME, KEPT_OUT)

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Return the nodes where required affinity is not met."""
        return ~self._near_enough(slots)

    def keeping_off(self, slots: SlotArray) -> IntArray:
        """Return by slot how many pods block the pod by anti-affinity, its own or theirs."""
        number: IntArray = np.zeros(len(slots), dtype=np.int64)
        for counts in (*self._away, *(one.counts for one in self._keeping_out())):
            number += counts.at_rows(slots)
        return number

    def missing_labels(self, slot: int) -> dict[str, list[str]]:
        """Return the topology keys of required affinity, with the domains of matching pods."""
        found: dict[str, list[str]] = {}
        for placed, counts in zip(self._request.signature.terms.affinity, self._near, strict=True):
            if counts.topology.codes[slot] == ABSENT:
                found.setdefault(placed.topology_key, matching_domains(counts))
        return found

    def is_affected_by(self, record: PodRecord) -> bool:
        """Whether a term of the pod selects this pod, or this pod's anti-affinity selects the
        pod.
        """
        self._match_terms_again()
        namespaces = self._request.cluster.namespaces
        key = (record.class_key, record.signature)
        known = self._affecting.get(key)
        if known is None:
            pending = self._request.signature
            known = is_affected_by(
                record.pod, record.signature, pending, pending.labels, namespaces
            )
            self._affecting[key] = known
        return known

    def _near_enough(self, rows: Rows) -> BoolArray:
        """Return the nodes where required affinity is met."""
        passes = self._request.cluster.alive[rows]
        self._match_terms_again()
        # The first of a group that wants to be together may go anywhere that has the labels.
        first = self._near_itself and not any(counts.total for counts in self._near)
        for counts in self._near:
            if first:
                passes = passes & (counts.topology.codes[rows] != ABSENT)
            else:
                passes = passes & (counts.at_rows(rows) > 0)
        return passes

    def _matches_itself(self) -> bool:
        signature, known = self._request.signature, self._request.cluster.namespaces
        near = signature.terms.affinity
        return bool(near) and all(
            placed.term.picks(signature.namespace, signature.labels, known) for placed in near
        )

    def _keeping_out(self) -> list[CountedTerm]:
        """The anti-affinity terms of running pods that concern this pod."""
        self._match_terms_again()
        return self._counted

    def _match_terms_again(self) -> None:
        """Match terms anew, if there are new ones or namespaces have changed."""
        cluster, signature = self._request.cluster, self._request.signature
        generation = (cluster.terms.generation, cluster.namespaces.version)
        if generation == self._generation:
            return
        self._generation = generation
        self._affecting.clear()
        self._near_itself = self._matches_itself()
        self._counted = [
            counted
            for counted in cluster.terms.concerning(signature.namespace, signature.labels)
            if counted.owned.kind is TermKind.KEEPS_OUT
        ]

    @property
    def applies(self) -> bool:
        """Whether a pod that runs or a term of its own restrains the pod now."""
        counted = self._keeping_out()
        return bool(self._near or self._away or any(one.counts.total for one in counted))

    @property
    def is_active(self) -> bool:
        """Whether any rule, of the pod or of others, concerns it now."""
        return bool(self._near or self._away or self._keeping_out())


def domain_counts(
    placed: PlacedTerm, terms: tuple[PodTerm, ...], cluster: ClusterState
) -> DomainCounts:
    """Return the counts of pods that all of these terms select, by domain of a topology."""
    match = PodMatch(terms, terminating_too=True)
    key = ("affinity", placed.topology_key, match)
    counts = cluster.pod_counts.counter(
        key, match, lambda: DomainCounts(cluster.topology(placed.topology_key))
    )
    if not isinstance(counts, DomainCounts):
        raise TypeError("affinity counts by domain")
    return counts


def matching_domains(counts: DomainCounts) -> list[str]:
    """Return the domains with counted pods."""
    codes = np.flatnonzero(counts.by_domain()[: counts.topology.size]).tolist()
    return sorted(counts.topology.values[code] for code in codes)


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter; whether others' rules concern the pod can change at any time."""
    return InterPodAffinity(request)


def is_affected_by(
    pod: Pod,
    signature: PodSignature,
    pending: PodSignature,
    labels: Mapping[str, str],
    known: Namespaces,
) -> bool:
    """Whether a running pod, of this signature, is picked by a waiting one's terms or keeps it out;
    `labels` are what of the waiting pod's labels the running one may read.
    """
    terms = (*pending.terms.affinity, *pending.terms.anti_affinity)
    if any(one.term.picks(pod.metadata.namespace, pod.metadata.labels, known) for one in terms):
        return True
    return any(
        owned.kind is TermKind.KEEPS_OUT and owned.term.concerns(pending.namespace, labels, known)
        for owned in signature.terms.owned
    )


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod was added or removed that one of the terms is about, or whose own terms are
    about the pod.
    """
    signatures, known = pending.cluster.signatures, pending.cluster.namespaces
    labels = pending.pod.metadata.labels  # all: the pod that is gone is no longer heeded
    return any(
        pod is not None
        and is_affected_by(pod, signatures.of(pod), pending.signature, labels, known)
        for pod in (removed_pod(event), added_pod(event))
    )


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    """Whether a node was added or removed, or is in other domains."""
    before, after = event.before, event.after
    if before is None or after is None:
        return True
    return before.metadata.labels != after.metadata.labels


HINTS: Hints = {Node: _node_may_help, Pod: _pod_may_help, Namespace: any_change}
