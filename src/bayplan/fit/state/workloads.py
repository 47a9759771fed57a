"""Services, controllers and disruption budgets: objects that select pods.

Kubernetes spreads the pods of a service, or of a ReplicaSet, StatefulSet or ReplicationController,
over hosts and zones even if they do not ask for it; the selector is everything that those say,
together. Selectors of budgets are compiled once and found by namespace and label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.fit.indexes import SelectorIndex, required_label
from bayplan.fit.signatures.reads import LabelReads, keys_of
from bayplan.fit.signatures.signature import PodSignature
from bayplan.kube.meta import Labels
from bayplan.kube.selectors import EVERYTHING, Selector, compile_selector, selector_from_labels
from bayplan.kube.workloads import (
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

Controller = ReplicaSet | ReplicationController | StatefulSet


class WorkloadSelectors:
    """Services by namespace, and the selectors of controllers."""

    def __init__(self, reads: LabelReads) -> None:
        self._reads = reads
        self.services: dict[str, dict[str, Service]] = defaultdict(dict)
        self.controllers: dict[tuple[str, str], Controller] = {}
        self.generations: dict[str, int] = defaultdict(int)
        """Moves for a namespace whenever a service or controller of it changes."""

    def put_service(self, service: Service) -> None:
        """Add or replace a service."""
        before = self.services[service.namespace].get(service.name)
        self.services[service.namespace][service.name] = service
        self._reads.add(service.namespace, service.spec.selector)
        if before is not None:
            self._reads.remove(service.namespace, before.spec.selector)
        self.generations[service.namespace] += 1

    def remove_service(self, key: str) -> None:
        """Forget a service."""
        namespace, _, name = key.partition("/")
        gone = self.services[namespace].pop(name)
        self._reads.remove(namespace, gone.spec.selector)
        self.generations[namespace] += 1

    def put_controller(self, controller: Controller) -> None:
        """Add or replace a controller."""
        key = (type(controller).__name__, controller.key)
        before = self.controllers.get(key)
        self.controllers[key] = controller
        self._reads.add(controller.namespace, keys_of(_selector(controller)))
        if before is not None:
            self._reads.remove(before.namespace, keys_of(_selector(before)))
        self.generations[controller.namespace] += 1

    def remove_controller(self, kind: str, key: str) -> None:
        """Forget a controller."""
        gone = self.controllers.pop((kind, key))
        self._reads.remove(gone.namespace, keys_of(_selector(gone)))
        self.generations[key.partition("/")[0]] += 1

    def selector_for(self, signature: PodSignature) -> Selector:
        """What the services and the controller behind a signature select; EVERYTHING if there are
        none.
        """
        merged: Labels = {}
        for service in self.services.get(signature.namespace, {}).values():
            wanted = service.spec.selector
            if wanted and selector_from_labels(wanted).matches(signature.labels):
                merged |= wanted
        owner = self._owner(signature)
        if isinstance(owner, ReplicationController):
            merged |= owner.spec.selector
        selector = selector_from_labels(merged) if merged else EVERYTHING
        if owner is None or isinstance(owner, ReplicationController):
            return selector
        return _both(selector, _selector(owner))

    def _owner(self, signature: PodSignature) -> Controller | None:
        if signature.owner is None:
            return None
        kind, name = signature.owner
        return self.controllers.get((kind, f"{signature.namespace}/{name}"))


def _selector(controller: Controller) -> Selector:
    if isinstance(controller, ReplicationController):
        return selector_from_labels(controller.spec.selector)
    return compile_selector(controller.spec.selector)


def _both(one: Selector, other: Selector) -> Selector:
    """Everything that both require; a selector of nothing adds no requirements here."""
    return Selector([*(one.requirements or ()), *(other.requirements or ())])


@dataclass(frozen=True, slots=True, eq=False)
class CompiledBudget:
    """A disruption budget with its selector compiled."""

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


class DisruptionBudgets:
    """All budgets, by key and by namespace."""

    def __init__(self) -> None:
        self.by_key: dict[str, PodDisruptionBudget] = {}
        self.version = 0
        """Moves with every change, so that a reader knows when to ask again."""
        self._compiled: dict[str, CompiledBudget] = {}
        self._by_namespace: dict[str, SelectorIndex[CompiledBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Add a budget, or replace the one of its key."""
        compiled = CompiledBudget.of(budget)
        self.remove(budget.key)
        self.by_key[budget.key] = budget
        if not compiled.selector.matches_everything:  # an empty selector protects nothing
            self._compiled[budget.key] = compiled
            there = self._by_namespace.setdefault(budget.metadata.namespace, SelectorIndex())
            there.add(required_label([compiled.selector]), compiled)

    def remove(self, key: str) -> None:
        """Forget a budget, if it is there."""
        self.version += 1
        budget, compiled = self.by_key.pop(key, None), self._compiled.pop(key, None)
        if budget is None or compiled is None:
            return
        there = self._by_namespace[budget.metadata.namespace]
        there.discard(required_label([compiled.selector]), compiled)
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
    """Use up one disruption of each budget of a pod; return whether one had none left."""
    breaks = False
    for budget in budgets:
        if budget.disrupted and name in budget.disrupted:
            continue  # the API server has counted it already
        left[budget] = now = left.get(budget, budget.allowed) - 1
        breaks = breaks or now < 0
    return breaks
