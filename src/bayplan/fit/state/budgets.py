"""Disruption budgets, their selectors compiled once and found by namespace and label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.fit.shapes.hooks import Hooked, hook_of
from bayplan.kube.selectors import Selector, compile_selector
from bayplan.kube.workloads import PodDisruptionBudget


@dataclass(frozen=True, slots=True, eq=False)
class CompiledBudget:
    """A budget that can protect something, ready to be asked whom."""

    selector: Selector
    allowed: int
    """How many more pods may go."""
    disrupted: frozenset[str]
    """Pods by name that the API server has already counted as gone."""

    @classmethod
    def of(cls, budget: PodDisruptionBudget) -> CompiledBudget:
        """A budget, compiled."""
        status = budget.status
        selector = compile_selector(budget.spec.selector)
        return cls(selector, status.disruptions_allowed, frozenset(status.disrupted_pods))


class Budgets:
    """All budgets, by key and by namespace."""

    def __init__(self) -> None:
        self.by_key: dict[str, PodDisruptionBudget] = {}
        self.version = 0
        """Moves with every change, so that a reader knows when to ask again."""
        self._compiled: dict[str, CompiledBudget] = {}
        self._by_namespace: dict[str, Hooked[CompiledBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Add a budget, or replace the one of its key."""
        compiled = CompiledBudget.of(budget)
        self.remove(budget.key)
        self.by_key[budget.key] = budget
        if not compiled.selector.matches_everything:  # an empty selector protects nothing
            self._compiled[budget.key] = compiled
            there = self._by_namespace.setdefault(budget.metadata.namespace, Hooked())
            there.add(hook_of([compiled.selector]), compiled)

    def remove(self, key: str) -> None:
        """Forget a budget, if it is there."""
        self.version += 1
        budget, compiled = self.by_key.pop(key, None), self._compiled.pop(key, None)
        if budget is None or compiled is None:
            return
        there = self._by_namespace[budget.metadata.namespace]
        there.discard(hook_of([compiled.selector]), compiled)
        if not there:
            del self._by_namespace[budget.metadata.namespace]

    def of(self, namespace: str, labels: Mapping[str, str]) -> tuple[CompiledBudget, ...]:
        """The budgets that protect a pod with these labels; one without labels has none."""
        if not labels or namespace not in self._by_namespace:
            return ()
        budgets = self._by_namespace[namespace].for_labels(labels)
        return tuple([one for one in budgets if one.selector.matches(labels)])


def breaks_one(
    budgets: Iterable[CompiledBudget], name: str, left: dict[CompiledBudget, int]
) -> bool:
    """Use up one disruption of each budget of a pod; says whether one had none left."""
    breaks = False
    for budget in budgets:
        if budget.disrupted and name in budget.disrupted:
            continue  # the API server has counted it already
        left[budget] = now = left.get(budget, budget.allowed) - 1
        breaks = breaks or now < 0
    return breaks
