"""What happens at its time: faults come and go, workloads are created, copies of them arrive."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import partial

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.control.controller import Controller, Create, Do, Plan, RequeueAfter, Stage
from bayplan.embedded.simulation.clusterfile import ScheduledFault, WorkloadSpec


class FaultSchedule(Controller[int]):
    """Puts the file's faults on the board and takes them off; keyed by their order."""

    name = "fault-schedule"

    def __init__(self, stage: Stage, faults: tuple[ScheduledFault, ...]) -> None:
        self._stage = stage
        self._faults = faults
        self._start = stage.seconds()

    def first(self) -> Iterable[int]:
        """All of them."""
        return range(len(self._faults))

    def decide(self, key: int) -> Plan:
        """Inject, clear, or wait."""
        planned = self._faults[key]
        since = self._stage.seconds() - self._start
        if since < planned.at:
            return [RequeueAfter(planned.at - since)]
        board, name = self._stage.faults, planned.name
        if planned.until is not None and since >= planned.until:
            return [Do(f"clear {name}", partial(board.clear, name))]
        plan: Plan = [] if planned.until is None else [RequeueAfter(planned.until - since)]
        if name not in board.active:
            plan.append(Do(f"inject {name}", partial(board.inject, name, planned.fault)))
        return plan


class WorkloadSchedule(Controller[int]):
    """Creates the file's workloads at their times; keyed by their order."""

    name = "workload-schedule"

    def __init__(self, stage: Stage, catalog: Catalog, workloads: tuple[WorkloadSpec, ...]) -> None:
        self._stage = stage
        self._catalog = catalog
        self._workloads = workloads
        self._start = stage.seconds()
        self._times = [self._draw(one) for one in workloads]
        self._made = [0] * len(workloads)  # objects, over all arrivals

    def first(self) -> Iterable[int]:
        """All that are not there from the beginning."""
        return [i for i, one in enumerate(self._workloads) if one.count or one.at > 0]

    def decide(self, key: int) -> Plan:
        """Create what is due, each once even if it is refused, and come back for the rest."""
        since = self._stage.seconds() - self._start
        times, spec, plan = self._times[key], self._workloads[key], Plan()
        due = bisect_right(times, since)
        for place in range(self._made[key], due * len(spec.objects)):
            number, index = divmod(place, len(spec.objects))
            plan.append(self._create(spec.objects[index], number if spec.count else None))
            plan.append(Do(f"arrival {number}", partial(self._went, key, place)))
        if due < len(times):
            plan.append(RequeueAfter(times[due] - since))
        return plan

    def _went(self, key: int, place: int) -> None:
        self._made[key] = place + 1

    def _draw(self, spec: WorkloadSpec) -> list[float]:
        if not spec.count:
            return [spec.at]
        if spec.random:
            rng = self._stage.rng
            return sorted(spec.at + rng.uniform(0, spec.over) for _ in range(spec.count))
        return [spec.at + spec.over * number / spec.count for number in range(spec.count)]

    def _create(self, obj: JsonObject, number: int | None) -> Create:
        return creation(self._catalog, obj, number)


def creation(catalog: Catalog, obj: JsonObject, number: int | None = None) -> Create:
    """The creation of an object, or of one of many copies of it; KeyError if nobody serves it."""
    kind = catalog.of_object(obj["apiVersion"], obj["kind"])
    if kind is None:
        raise KeyError(f"{obj['apiVersion']} {obj['kind']}")
    made = clone(obj)
    if kind.namespaced:
        made["metadata"].setdefault("namespace", "default")
    if number is not None:
        made["metadata"]["name"] = f"{obj['metadata']['name']}-{number}"
    return Create(kind.storage, made, once=True)
