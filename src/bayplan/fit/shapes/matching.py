"""Which pods a term speaks of: namespaces (by name or by their labels) and a label selector.

Pod affinity is asked in two directions, and Kubernetes treats namespace selectors a little
differently in each: a waiting pod's own selector picks among namespaces that exist, and picks all
if it accepts one without labels; a running pod's selector is held against the labels of the waiting
pod's namespace, empty if nobody knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.kube.meta import Labels
from bayplan.kube.selectors import Selector

ClassKey = tuple[str, tuple[tuple[str, str], ...], bool]
"""How selectors see a pod: its namespace, its labels, and whether it is terminating."""
NO_LABELS: Mapping[str, str] = {}


class Namespaces:
    """The labels of every namespace that is known."""

    def __init__(self) -> None:
        self.labels: dict[str, Labels] = {}
        self.version = 0

    def put(self, name: str, labels: Labels) -> bool:
        """Note a namespace; says whether that changed anything."""
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
