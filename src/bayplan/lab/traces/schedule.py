"""A trace at work: what arrives is created at its time, each row once, read when it is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.control.controller import Controller, Create, Do, Plan, RequeueAfter, Stage
from bayplan.embedded.simulation.schedule import creation
from bayplan.lab.traces.objects import priority_class, workload
from bayplan.lab.traces.rows import Row


class TraceSchedule(Controller[int]):
    """Creates the work of a trace; there is one key."""

    name = "trace"

    def __init__(self, stage: Stage, catalog: Catalog, rows: Iterator[Row]) -> None:
        self._stage = stage
        self._catalog = catalog
        self._rows = rows
        self._start = stage.seconds()
        self._due: deque[Row] = deque()
        self._next = next(rows, None)
        self._number = 0
        self._priorities: set[int] = set()

    def first(self) -> Iterable[int]:
        """The one key."""
        return (0,)

    def decide(self, key: int) -> Plan:  # noqa: ARG002 - there is only one
        """Create what is due, each once even if it is refused, and come back for the rest."""
        since = self._stage.seconds() - self._start
        while self._next is not None and self._next.arrival <= since + 1e-6:
            self._due.append(self._next)
            self._next = next(self._rows, None)
        plan = Plan()
        for index, row in enumerate(self._due):
            plan += self._class_of(row)
            plan.append(Create(*workload(row, self._number + index), once=True))
            plan.append(Do(f"arrival {self._number + index}", self._went))
        if self._next is not None:
            plan.append(RequeueAfter(self._next.arrival - since))
        return plan

    def _went(self) -> None:
        self._priorities.add(self._due.popleft().priority)
        self._number += 1

    def _class_of(self, row: Row) -> Plan:
        if not row.priority or row.priority in self._priorities:
            return []
        return [creation(self._catalog, priority_class(row.priority))]
