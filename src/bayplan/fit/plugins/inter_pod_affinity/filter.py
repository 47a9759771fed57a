"""InterPodAffinity: pods that must be near others, or away from them, and others that say so
too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.fit.events import Event
from bayplan.fit.plugins.base import Filter, Question, Reads
from bayplan.fit.plugins.hints import Hints, Waiting, any_change, come, gone
from bayplan.fit.refusal import Refusal
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import Namespaces, PlacedTerm, PodMatch, PodTerm, TermKind
from bayplan.fit.state.cluster import Cluster
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
    reads = Reads.CLUSTER

    def __init__(self, question: Question) -> None:
        self._question = question
        cluster, terms = question.cluster, question.signature.terms
        near = tuple(placed.term for placed in terms.affinity)
        self._near = [domain_counts(placed, near, cluster) for placed in terms.affinity]
        self._away = [
            domain_counts(placed, (placed.term,), cluster) for placed in terms.anti_affinity
        ]
        self._near_itself = False
        self._standing: list[CountedTerm] = []
        self._generation = (-1, -1)
        self._heeded: dict[object, bool] = {}

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes that no rule forbids."""
        passes = self._near_enough(rows)
        for counts in self._away:
            passes = passes & (counts.at_rows(rows) == 0)
        for standing in self._keeping_out():
            if standing.counts.total:
                passes = passes & (standing.counts.at_rows(rows) == 0)
        return passes

    def refusal(self, slot: int) -> Refusal:
        """The first rule that forbids a node, in kube-scheduler's order."""
        if self.unresolvable(np.array([slot], dtype=np.intp))[0]:
            return Refusal.unresolvable(NAME, NOT_NEAR)
        if any(counts.at(slot) for counts in self._away):
            return Refusal.unschedulable(NAME, NOT_AWAY)
        return Refusal.unschedulable(NAME, KEPT_OUT)

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Those that are not near what the pod must be near."""
        return ~self._near_enough(slots)

    def keeping_off(self, slots: SlotArray) -> IntArray:
        """By slot, how many pods keep the pod off by anti-affinity, its own or theirs."""
        number: IntArray = np.zeros(len(slots), dtype=np.int64)
        for counts in (*self._away, *(one.counts for one in self._keeping_out())):
            number += counts.at_rows(slots)
        return number

    def missing_labels(self, slot: int) -> dict[str, list[str]]:
        """The labels over which the pod must be near others, with the domains where those are."""
        found: dict[str, list[str]] = {}
        for placed, counts in zip(self._question.signature.terms.affinity, self._near, strict=True):
            if counts.topology.codes[slot] == ABSENT:
                found.setdefault(placed.topology_key, matching_domains(counts))
        return found

    def heeds(self, record: PodRecord) -> bool:
        """Those that a term of the pod picks, or that keep it out themselves."""
        self._look_again()
        namespaces = self._question.cluster.namespaces
        key = (record.class_key, record.signature)
        known = self._heeded.get(key)
        if known is None:
            waiting = self._question.signature
            known = matters(record.pod, record.signature, waiting, waiting.labels, namespaces)
            self._heeded[key] = known
        return known

    def _near_enough(self, rows: Rows) -> BoolArray:
        """Nodes with the labels, and with a pod that matches all terms in each of the domains."""
        passes = self._question.cluster.alive[rows]
        self._look_again()
        # The first of a group that wants to be together may go anywhere that has the labels.
        first = self._near_itself and not any(counts.total for counts in self._near)
        for counts in self._near:
            if first:
                passes = passes & (counts.topology.codes[rows] != ABSENT)
            else:
                passes = passes & (counts.at_rows(rows) > 0)
        return passes

    def _matches_itself(self) -> bool:
        signature, known = self._question.signature, self._question.cluster.namespaces
        near = signature.terms.affinity
        return bool(near) and all(
            placed.term.picks(signature.namespace, signature.labels, known) for placed in near
        )

    def _keeping_out(self) -> list[CountedTerm]:
        """The anti-affinity terms of running pods that concern this pod."""
        self._look_again()
        return self._standing

    def _look_again(self) -> None:
        """Match terms anew, if there are new ones or namespaces have changed."""
        cluster, signature = self._question.cluster, self._question.signature
        generation = (cluster.terms.generation, cluster.namespaces.version)
        if generation == self._generation:
            return
        self._generation = generation
        self._heeded.clear()
        self._near_itself = self._matches_itself()
        self._standing = [
            standing
            for standing in cluster.terms.concerning(signature.namespace, signature.labels)
            if standing.owned.kind is TermKind.KEEPS_OUT
        ]

    @property
    def applies(self) -> bool:
        """Whether a pod that runs or a term of its own restrains the pod now."""
        standing = self._keeping_out()
        return bool(self._near or self._away or any(one.counts.total for one in standing))

    @property
    def has_say(self) -> bool:
        """Whether any rule, of the pod or of others, concerns it now."""
        return bool(self._near or self._away or self._keeping_out())


def domain_counts(placed: PlacedTerm, terms: tuple[PodTerm, ...], cluster: Cluster) -> DomainCounts:
    """By domain of a term's topology, the pods that all of these terms pick."""
    match = PodMatch(terms, terminating_too=True)
    key = ("affinity", placed.topology_key, match)
    counts = cluster.pod_counts.counter(
        key, match, lambda: DomainCounts(cluster.topology(placed.topology_key))
    )
    if not isinstance(counts, DomainCounts):
        raise TypeError("affinity counts by domain")
    return counts


def matching_domains(counts: DomainCounts) -> list[str]:
    """The domains in which there are pods that are counted."""
    codes = np.flatnonzero(counts.by_domain()[: counts.topology.size]).tolist()
    return sorted(counts.topology.values[code] for code in codes)


def compile_filter(question: Question) -> Filter | None:
    """The filter; whether others' rules concern the pod can change at any time."""
    return InterPodAffinity(question)


def matters(
    pod: Pod,
    signature: PodSignature,
    waiting: PodSignature,
    labels: Mapping[str, str],
    known: Namespaces,
) -> bool:
    """Whether a running pod, of this signature, is picked by a waiting one's terms or keeps it out;
    `labels` are what of the waiting pod's labels the running one may read.
    """
    terms = (*waiting.terms.affinity, *waiting.terms.anti_affinity)
    if any(one.term.picks(pod.metadata.namespace, pod.metadata.labels, known) for one in terms):
        return True
    return any(
        owned.kind is TermKind.KEEPS_OUT and owned.term.concerns(waiting.namespace, labels, known)
        for owned in signature.terms.owned
    )


def _pod_may_help(waiting: Waiting, event: Event) -> bool:
    """A pod came or went that one of the terms is about, or whose own terms are about the pod."""
    signatures, known = waiting.cluster.signatures, waiting.cluster.namespaces
    labels = waiting.pod.metadata.labels  # all: the pod that is gone is no longer heeded
    return any(
        pod is not None and matters(pod, signatures.of(pod), waiting.signature, labels, known)
        for pod in (gone(event), come(event))
    )


def _node_may_help(waiting: Waiting, event: Event) -> bool:  # noqa: ARG001 - whoever waits
    """A node came or went, or is in other domains."""
    before, after = event.before, event.after
    if before is None or after is None:
        return True
    return before.metadata.labels != after.metadata.labels


HINTS: Hints = {Node: _node_may_help, Pod: _pod_may_help, Namespace: any_change}
