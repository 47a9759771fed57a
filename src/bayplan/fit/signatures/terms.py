"""A pod's rules about other pods: affinity and anti-affinity terms and spread constraints,
compiled.

A term picks pods by namespaces (by name or by their labels) and a label selector. Pod affinity is
asked in two directions, and Kubernetes treats namespace selectors a little differently in each: a
waiting pod's own selector picks among namespaces that exist, and picks all if it accepts one
without labels; a running pod's selector is held against the labels of the waiting pod's namespace,
empty if it is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from bayplan.kube.meta import Labels, LabelSelector
from bayplan.kube.pods import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from bayplan.kube.selectors import Selector, compile_selector

ClassKey = tuple[str, tuple[tuple[str, str], ...], bool]
"""How selectors see a pod: its namespace, its labels, and whether it is terminating."""
NO_LABELS: Mapping[str, str] = {}


class Namespaces:
    """The labels of every namespace that is known."""

    def __init__(self) -> None:
        self.labels: dict[str, Labels] = {}
        self.version = 0

    def put(self, name: str, labels: Labels) -> bool:
        """Record a namespace; return whether that changed anything."""
        if self.labels.get(name) == labels:
            return False
        self.labels[name] = labels
        self.version += 1
        return True

    def remove(self, name: str) -> None:
        """Forget a namespace."""
        if self.labels.pop(name, None) is not None:
            self.version += 1


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods of some namespaces that match a selector."""

    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector

    def picks(self, namespace: str, labels: Mapping[str, str], known: Namespaces) -> bool:
        """Whether a waiting pod that has this term means a running pod of these labels."""
        return self._own_scope(namespace, known) and self.selector.matches(labels)

    def concerns(self, namespace: str, labels: Mapping[str, str], known: Namespaces) -> bool:
        """Whether a running pod that has this term means a waiting pod of these labels."""
        if namespace not in self.namespaces:
            if self.namespace_selector is None:
                return False
            if not self.namespace_selector.matches(known.labels.get(namespace, NO_LABELS)):
                return False
        return self.selector.matches(labels)

    def _own_scope(self, namespace: str, known: Namespaces) -> bool:
        if namespace in self.namespaces:
            return True
        if self.namespace_selector is None:
            return False
        if self.namespace_selector.matches(NO_LABELS):
            return True
        labels = known.labels.get(namespace)
        return labels is not None and self.namespace_selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Pods that all of these terms pick; terminating ones only where they count."""

    terms: tuple[PodTerm, ...]
    terminating_too: bool

    @property
    def reads_namespaces(self) -> bool:
        """Whether the labels of namespaces matter."""
        return any(term.namespace_selector is not None for term in self.terms)

    def picks(
        self, namespace: str, labels: Mapping[str, str], known: Namespaces, *, terminating: bool
    ) -> bool:
        """Whether a pod with these labels is meant."""
        if terminating and not self.terminating_too:
            return False
        return all(term.picks(namespace, labels, known) for term in self.terms)


def class_key(namespace: str, labels: Labels, *, terminating: bool = False) -> ClassKey:
    """How selectors see a pod."""
    return (namespace, tuple(sorted(labels.items())), terminating)


def everything_in(namespaces: Iterable[str], selector: Selector) -> PodTerm:
    """Pods of these namespaces that match a selector."""
    return PodTerm(frozenset(namespaces), None, selector)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A spread constraint, with its selector ready."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


@dataclass(frozen=True, slots=True)
class PlacedTerm:
    """A term and the topology it is about."""

    term: PodTerm
    topology_key: str
    weight: int = 0


class TermKind(Enum):
    """The effect of a running pod's term on a pending pod."""

    KEEPS_OUT = "required anti-affinity"
    NEEDS = "required affinity"
    ATTRACTS = "a preference, by its weight"


@dataclass(frozen=True, slots=True)
class OwnedTerm:
    """A term as a pod has it."""

    kind: TermKind
    term: PodTerm
    topology_key: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class TermSet:
    """All of a pod's terms about other pods."""

    affinity: tuple[PlacedTerm, ...] = ()
    anti_affinity: tuple[PlacedTerm, ...] = ()
    preferences: tuple[PlacedTerm, ...] = ()
    """Preferred terms; those of anti-affinity weigh less than nothing."""
    owned: tuple[OwnedTerm, ...] = ()
    """What the pod's terms mean to others once it runs."""


NO_TERMS = TermSet()


def compile_terms(pod: Pod) -> TermSet:
    """A pod's affinity and anti-affinity."""
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity else None
    apart = affinity.pod_anti_affinity if affinity else None
    if near is None and apart is None:
        return NO_TERMS
    required_near = _required(near, pod)
    required_apart = _required(apart, pod)
    preferences = (*_preferred(near, pod, 1), *_preferred(apart, pod, -1))
    return TermSet(
        affinity=required_near,
        anti_affinity=required_apart,
        preferences=preferences,
        owned=tuple(_owned(required_near, required_apart, preferences)),
    )


def _owned(
    near: Iterable[PlacedTerm], apart: Iterable[PlacedTerm], preferences: Iterable[PlacedTerm]
) -> Iterable[OwnedTerm]:
    for placed in apart:
        yield OwnedTerm(TermKind.KEEPS_OUT, placed.term, placed.topology_key)
    for placed in near:
        yield OwnedTerm(TermKind.NEEDS, placed.term, placed.topology_key)
    for placed in preferences:
        yield OwnedTerm(TermKind.ATTRACTS, placed.term, placed.topology_key, placed.weight)


def _required(affinity: PodAffinity | None, pod: Pod) -> tuple[PlacedTerm, ...]:
    terms = affinity.required if affinity else []
    return tuple(PlacedTerm(_term(term, pod), term.topology_key) for term in terms)


def _preferred(affinity: PodAffinity | None, pod: Pod, sign: int) -> Iterable[PlacedTerm]:
    for preferred in affinity.preferred if affinity else []:
        term = preferred.pod_affinity_term
        yield PlacedTerm(_term(term, pod), term.topology_key, sign * preferred.weight)


def _term(term: PodAffinityTerm, pod: Pod) -> PodTerm:
    labels = pod.metadata.labels
    selector = compile_selector(term.label_selector)
    selector = _with_label_keys(selector, term.match_label_keys, labels)
    for key in term.mismatch_label_keys:
        if key in labels:
            selector = selector.with_requirement(key, "NotIn", [labels[key]])
    if not term.namespaces and term.namespace_selector is None:
        return PodTerm(frozenset({pod.metadata.namespace}), None, selector)
    by_label = term.namespace_selector
    return PodTerm(
        frozenset(term.namespaces), compile_selector(by_label) if by_label else None, selector
    )


def _with_label_keys(selector: Selector, keys: Iterable[str], labels: Labels) -> Selector:
    """The selector narrowed to pods that share the pod's own values of these keys."""
    for key in keys:
        if key in labels:
            selector = selector.with_requirement(key, "In", [labels[key]])
    return selector


def compile_spread(
    pod: Pod,
) -> tuple[tuple[SpreadConstraint, ...], tuple[SpreadConstraint, ...]]:
    """A pod's spread constraints: those that must hold, and those that should."""
    hard: list[SpreadConstraint] = []
    soft: list[SpreadConstraint] = []
    for constraint in pod.spec.topology_spread_constraints:
        bucket = hard if constraint.when_unsatisfiable == "DoNotSchedule" else soft
        bucket.append(_spread(constraint, pod.metadata.labels))
    return tuple(hard), tuple(soft)


def _spread(constraint: TopologySpreadConstraint, labels: Labels) -> SpreadConstraint:
    selector = compile_selector(constraint.label_selector)
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=_with_label_keys(selector, constraint.match_label_keys, labels),
        min_domains=constraint.min_domains or 1,
        honor_affinity=constraint.node_affinity_policy == "Honor",
        honor_taints=constraint.node_taints_policy == "Honor",
    )


def own_label_keys(pod: Pod) -> frozenset[str]:
    """The labels that a pod's own terms and constraints read, of itself as of others."""
    keys: set[str] = set()
    for term in _terms(pod):
        keys.update(term.match_label_keys, term.mismatch_label_keys)
        keys |= _selector_keys(term.label_selector)
    for constraint in pod.spec.topology_spread_constraints:
        keys.update(constraint.match_label_keys)
        keys |= _selector_keys(constraint.label_selector)
    return frozenset(keys)


def _terms(pod: Pod) -> Iterable[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if one is not None:
            yield from one.required
            yield from (preferred.pod_affinity_term for preferred in one.preferred)


def _selector_keys(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.match_labels, *(one.key for one in selector.match_expressions)}
