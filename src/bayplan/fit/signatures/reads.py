"""What is read of pods and nodes: all else tells no two of them apart.

`LabelReads` has the labels of pods that some selector reads, by namespace. Jobs give every run its
own labels, and sets number their replicas; as long as no selector reads those labels, such pods are
equivalent. A selector is added when it comes and may be removed when it goes. It concerns pods in
some namespaces; one that picks namespaces by their labels concerns all.

`PluginReads` has what plugins read of objects. A change of a node that no plugin reads changes no
answer, and pods of which plugins read the same have one signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from bayplan.fit.signatures.terms import PodTerm
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import Selector

NOWHERE: frozenset[str] = frozenset()
NO_LABELS: Labels = {}
OnNewKeys = Callable[[str | None, frozenset[str]], None]
"""Told a namespace (None: all of them) and label keys that are read there from now on."""


class LabelReads:
    """Label keys by namespace, with how many selectors read them."""

    def __init__(self, on_new_keys: OnNewKeys | None = None) -> None:
        self._on_new_keys = on_new_keys
        self._counts: dict[str | None, Counter[str]] = {None: Counter()}
        self._read: dict[str, frozenset[str]] = {}
        self._everywhere = NOWHERE
        self.version = 0
        """Moves whenever other labels are read than before."""

    def of(self, namespace: str) -> frozenset[str]:
        """The keys that are read of pods in a namespace."""
        return self._read.get(namespace, self._everywhere)

    def read_labels(self, namespace: str, labels: Labels) -> Labels:
        """Return the labels of a pod that some selector reads."""
        read = self._read.get(namespace, self._everywhere)
        if not read:
            return NO_LABELS
        if labels.keys() <= read:
            return labels
        return {key: value for key, value in labels.items() if key in read}

    def add_term(self, term: PodTerm) -> None:
        """Read what a term of a pod reads."""
        self._add(scope_of(term), keys_of(term.selector))

    def remove_term(self, term: PodTerm) -> None:
        """Read it no longer, if no other selector does."""
        self._remove(scope_of(term), keys_of(term.selector))

    def add(self, namespace: str, keys: Iterable[str]) -> None:
        """Read these keys in a namespace."""
        self._add((namespace,), frozenset(keys))

    def remove(self, namespace: str, keys: Iterable[str]) -> None:
        """Read them no longer, if no other selector does."""
        self._remove((namespace,), frozenset(keys))

    def clear(self) -> None:
        """Read nothing any more."""
        self._counts = {None: Counter()}
        self._read.clear()
        self._everywhere = NOWHERE
        self.version += 1

    def _add(self, scope: Iterable[str | None], keys: frozenset[str]) -> None:
        if not keys:
            return
        for namespace in scope:
            counts = self._counts.setdefault(namespace, Counter())
            fresh = frozenset(key for key in keys if not counts[key])
            counts.update(keys)
            if fresh:
                self._changed(namespace)
                if self._on_new_keys is not None:
                    self._on_new_keys(namespace, fresh)

    def _remove(self, scope: Iterable[str | None], keys: frozenset[str]) -> None:
        if not keys:
            return
        for namespace in scope:
            counts = self._counts[namespace]
            counts.subtract(keys)
            gone = [key for key in keys if not counts[key]]
            for key in gone:
                del counts[key]
            if gone:
                self._changed(namespace)

    def _changed(self, namespace: str | None) -> None:
        self.version += 1
        if namespace is None:
            self._everywhere = frozenset(self._counts[None])
            for name in self._read:
                self._read[name] = self._everywhere | frozenset(self._counts[name])
            return
        if self._counts[namespace]:
            self._read[namespace] = self._everywhere | frozenset(self._counts[namespace])
        else:
            del self._counts[namespace]
            self._read.pop(namespace, None)


def scope_of(term: PodTerm) -> tuple[str | None, ...]:
    """Return the namespaces that a term is about; None stands for all."""
    return (None,) if term.namespace_selector is not None else tuple(term.namespaces)


def keys_of(selector: Selector) -> frozenset[str]:
    """The label keys that a selector reads."""
    return frozenset(wanted.key for wanted in selector.requirements or ())


PluginFields = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class PluginReads:
    """What plugins read."""

    is_same_node: Callable[[Node, Node], bool]
    """Whether two states of a node are the same to all plugins."""
    pod_fields: Callable[[Pod], object]
    """The values of the fields of a pod that plugins read beyond what every signature has."""
    by_plugin: Mapping[str, Callable[[Pod], PluginFields]]
    """By plugin, what it makes of a pod's fields."""

    def sign(self, pod: Pod) -> Mapping[str, PluginFields]:
        """Return what plugins make of a pod's fields, by plugin, where it is not empty."""
        signed = {name: sign(pod) for name, sign in self.by_plugin.items()}
        return {name: fields for name, fields in signed.items() if fields}
