"""Which of two pods matters more: the one of higher priority, then the one that runs longer.

What is worked out for a pod is kept with its record, since preemption asks the same of thousands of
pods again and again.
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


class Standing(NamedTuple):
    """What preemption has to know of a pod, as long as pod and budgets are these."""

    record: PodRecord
    pod: Pod
    version: int
    priority: int
    importance: Importance
    budgets: tuple[CompiledBudget, ...]


class Standings:
    """The standing of pods that could be preempted."""

    def __init__(self, budgets: DisruptionBudgets, priority: Callable[[Pod], int]) -> None:
        self._budgets = budgets
        self._priority = priority

    def below(self, records: Iterable[PodRecord], priority: int) -> list[PodRecord]:
        """Those of lower priority."""
        lower = []
        for record in records:
            own = record.pod.spec.priority
            if (self._priority(record.pod) if own is None else own) < priority:
                lower.append(record)
        return lower

    def by_budget(self, lower: Iterable[PodRecord]) -> tuple[list[Standing], list[Standing]]:
        """Pods whose eviction would break a budget, and the others, the most important first."""
        left: dict[CompiledBudget, int] = {}
        protected: list[Standing] = []
        others: list[Standing] = []
        for one in sorted(map(self._of, lower), key=IMPORTANCE):
            if one.budgets and breaks_one(one.budgets, one.pod.name, left):
                protected.append(one)
            else:
                others.append(one)
        return protected, others

    def _of(self, record: PodRecord) -> Standing:
        known = record.standing
        if (
            isinstance(known, Standing)
            and known.pod is record.pod
            and known.version == self._budgets.version
        ):
            return known
        return self._work_out(record)

    def _work_out(self, record: PodRecord) -> Standing:
        pod = record.pod
        priority = self._priority(pod)
        importance = Importance(-priority, start_of(pod), NaturalName(pod.key))
        budgets = self._budgets.of(pod.metadata.namespace, pod.metadata.labels)
        found = Standing(record, pod, self._budgets.version, priority, importance, budgets)
        if pod.spec.priority is not None:  # else it is that of a class, which can change
            record.standing = found
        return found


def start_of(pod: Pod) -> float:
    """When a pod started; one that has not, as far as can be read, is later than all that have."""
    try:
        return datetime.fromisoformat(pod.status.start_time or "").timestamp()
    except (ValueError, OverflowError):
        return float("inf")
