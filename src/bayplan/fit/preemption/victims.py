"""Victims: which of two pods matters more, and which set of victims costs the least.

The pod of higher priority matters more, then the one that runs longer. What is worked out for a pod
is kept with its record, since preemption asks the same of thousands of pods again and again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from bayplan.fit.state.pods import PodRecord
from bayplan.fit.state.workloads import CompiledBudget, DisruptionBudgets, breaks_one
from bayplan.kube.pods import Pod

NUMBERS = re.compile(r"(\d+)")
IMPORTANCE = attrgetter("importance")


class NaturalName:
    """A name such that `web-2` comes before `web-10`; most are never compared, as pods differ in
    priority or start.
    """

    __slots__ = ("_name", "_parts")

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts: tuple[tuple[int, str], ...] | None = None

    @property
    def parts(self) -> tuple[tuple[int, str], ...]:
        """What it is compared by."""
        if self._parts is None:
            split = NUMBERS.split(self._name)
            self._parts = tuple((len(part) if part.isdigit() else 0, part) for part in split)
        return self._parts

    def __lt__(self, other: NaturalName) -> bool:
        return self.parts < other.parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NaturalName) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)


class Importance(NamedTuple):
    """Sorts the most important pod first: highest priority, longest running, then by name."""

    below: int
    """The priority, negated."""
    start: float
    name: NaturalName


class PreemptiblePod(NamedTuple):
    """A pod that may be preempted, as long as pod and budgets are unchanged."""

    record: PodRecord
    pod: Pod
    version: int
    priority: int
    importance: Importance
    budgets: tuple[CompiledBudget, ...]


class PreemptiblePods:
    """Pods that may be preempted, ordered by importance and budgets."""

    def __init__(self, budgets: DisruptionBudgets, priority: Callable[[Pod], int]) -> None:
        self._budgets = budgets
        self._priority = priority

    def below(self, records: Iterable[PodRecord], priority: int) -> list[PodRecord]:
        """Return the pods of lower priority."""
        lower = []
        for record in records:
            own = record.pod.spec.priority
            if (self._priority(record.pod) if own is None else own) < priority:
                lower.append(record)
        return lower

    def by_budget(
        self, lower: Iterable[PodRecord]
    ) -> tuple[list[PreemptiblePod], list[PreemptiblePod]]:
        """Return pods whose eviction would violate a budget, and the others, the most important
        first.
        """
        left: dict[CompiledBudget, int] = {}
        protected: list[PreemptiblePod] = []
        others: list[PreemptiblePod] = []
        for one in sorted(map(self._of, lower), key=IMPORTANCE):
            if one.budgets and breaks_one(one.budgets, one.pod.name, left):
                protected.append(one)
            else:
                others.append(one)
        return protected, others

    def _of(self, record: PodRecord) -> PreemptiblePod:
        known = record.preemption_info
        if (
            isinstance(known, PreemptiblePod)
            and known.pod is record.pod
            and known.version == self._budgets.version
        ):
            return known
        return self._compute(record)

    def _compute(self, record: PodRecord) -> PreemptiblePod:
        pod = record.pod
        priority = self._priority(pod)
        importance = Importance(-priority, start_of(pod), NaturalName(pod.key))
        budgets = self._budgets.of(pod.metadata.namespace, pod.metadata.labels)
        found = PreemptiblePod(record, pod, self._budgets.version, priority, importance, budgets)
        if pod.spec.priority is not None:  # else it is that of a class, which can change
            record.preemption_info = found
        return found


def start_of(pod: Pod) -> float:
    """Return when a pod started; one without a readable start is later than all others."""
    try:
        return datetime.fromisoformat(pod.status.start_time or "").timestamp()
    except (ValueError, OverflowError):
        return float("inf")


LOWEST_PRIORITY = -(1 << 31)
Cost = tuple[int, int, int, int, float, str]


class PreemptionCandidate(NamedTuple):
    """A node, and the pods that would have to leave it, the most important first."""

    node: str
    victims: list[PreemptiblePod]
    budgets_broken: int

    @classmethod
    def of(
        cls, node: str, protected: list[PreemptiblePod], others: list[PreemptiblePod]
    ) -> PreemptionCandidate:
        """Return the candidate with these victims: those that a budget protects, and others."""
        victims = protected + others
        if protected and others:
            victims.sort(key=IMPORTANCE)
        return cls(node, victims, len(protected))


def cost(found: PreemptionCandidate) -> Cost:
    """Return the cost of a candidate; the least is best."""
    first = found.victims[0]
    priorities = [one.priority for one in found.victims]
    # Victims of one priority stand in the order in which they started, so the first is the oldest.
    return (
        found.budgets_broken,
        first.priority,
        sum(priorities) - LOWEST_PRIORITY * len(priorities),
        len(priorities),
        -first.importance.start,
        found.node,
    )
