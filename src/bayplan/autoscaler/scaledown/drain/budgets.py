"""What disruption budgets still allow, while nodes are taken away one after the other.

A budget is for the pods of its namespace that its selector selects; an empty selector is for all of
them. A pod may go while every budget for it allows at least one; a node with more pods than that is
only risky, and what it spends beyond its budget is owed by the nodes after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bayplan.fit.indexes import SelectorIndex, required_label
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import Selector, compile_selector
from bayplan.kube.workloads import PodDisruptionBudget

Selected = tuple[str, Selector]
"""A budget's key, and the selector of its pods."""


class BudgetIndex:
    """Budgets by the pods that they are for."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self.allowed: dict[str, int] = {}
        self._by_namespace: dict[str, SelectorIndex[Selected]] = {}
        for budget in budgets:
            self.allowed[budget.key] = budget.status.disruptions_allowed
            selector = compile_selector(budget.spec.selector)
            there = self._by_namespace.setdefault(budget.namespace, SelectorIndex())
            there.add(required_label([selector]), (budget.key, selector))

    def of(self, pod: Pod) -> list[str]:
        """The keys of a pod's budgets."""
        there = self._by_namespace.get(pod.metadata.namespace)
        if there is None:
            return []
        labels = pod.metadata.labels
        return [key for key, selector in there.for_labels(labels) if selector.matches(labels)]


class BudgetBook:
    """The index of a snapshot's budgets, made anew only when they change."""

    def __init__(self) -> None:
        self._version = -1
        self._index = BudgetIndex(())

    def remaining(self, snapshot: Snapshot) -> RemainingBudgets:
        """What the budgets allow as they now stand."""
        if self._version != snapshot.budgets.version:
            self._index = BudgetIndex(snapshot.budgets.by_key.values())
            self._version = snapshot.budgets.version
        return RemainingBudgets(self._index)


class RemainingBudgets:
    """What is left of budgets as pods are taken away."""

    def __init__(self, index: BudgetIndex) -> None:
        self._index = index
        self._spent: Counter[str] = Counter()

    def protects(self, pod: Pod) -> bool:
        """Whether any budget is for the pod."""
        return bool(self._index.of(pod))

    def allows(self, pod: Pod) -> bool:
        """Whether every budget of the pod has one left."""
        return all(self._left(key) >= 1 for key in self._index.of(pod))

    def spend(self, pods: Iterable[Pod]) -> bool:
        """These go; says whether all of them could go at once."""
        asked = Counter(key for pod in pods for key in self._index.of(pod))
        together = all(self._left(key) >= count for key, count in asked.items())
        self._spent.update(asked)
        return together

    def _left(self, key: str) -> int:
        return self._index.allowed[key] - self._spent[key]
