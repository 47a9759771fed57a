"""Scheduled faults and workloads, and faults injected by a ConfigMap.

The ConfigMap `bayplan-faults` in `kube-system` controls faults: each of its entries is a fault in
YAML, under any name; adding an entry injects the fault, removing it is the recovery:

    kubectl -n kube-system create configmap bayplan-faults \
        --from-literal=one='{kind: node-dies, node: workers-1}'

An invalid entry, or one without a matching target, is refused when it is written. One that an
earlier run with another cluster file left behind is reported as an event and ignored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import partial

import yaml

from bayplan.base.configfiles import FieldProblem, convert_value
from bayplan.base.yaml_values import YamlError, build
from bayplan.embedded.apiserver.errors import FieldCause, invalid
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    LocalAction,
    Plan,
    RecordEvent,
    RequeueAfter,
)
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import CONFIG_MAPS
from bayplan.embedded.simulation.clusterfile import ScheduledFault, WorkloadSpec
from bayplan.embedded.simulation.clusterfile.faults import FaultSection, Targets

CONTROL = ObjectKey(CONFIG_MAPS, "kube-system", "bayplan-faults")
_PREFIX = "control/"


class FaultControl(Controller[ObjectKey]):
    """Injects the faults of one ConfigMap."""

    name = "fault-control"
    storages = (CONFIG_MAPS,)

    def __init__(self, context: ControllerContext, targets: Targets) -> None:
        self._context = context
        self._targets = targets

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return the key of the control ConfigMap."""
        return (CONTROL,) if change.entry.key == CONTROL else ()

    async def admit(self, request: AdmissionRequest) -> None:
        """Refuse invalid entries; StatusError if a new one is invalid."""
        call = request.call
        if (
            ObjectKey(call.kind.storage, call.namespace, call.name) != CONTROL
            or request.object is None
        ):
            return
        before = (request.old_object or {}).get("data") or {}
        causes = [
            FieldCause("FieldValueInvalid", problem, f"data.{name}")
            for name, text in sorted((request.object.get("data") or {}).items())
            if before.get(name) != text and (problem := self._problem(text))
        ]
        if causes:
            raise invalid("", "ConfigMap", call.name, causes)

    def _problem(self, text: str) -> str:
        try:
            parse_fault(text, self._targets)
        except ValueError as problem:
            return str(problem)[:500]
        return ""

    def decide(self, key: ObjectKey) -> Plan:
        """Set the board to the faults of the ConfigMap."""
        board = self._context.faults
        entries = (self._context.view.object(key) or {}).get("data") or {}
        wanted: dict[str, Fault] = {}
        plan: Plan = []
        for name in sorted(entries):
            try:
                wanted[_PREFIX + name] = parse_fault(entries[name], self._targets)
            except ValueError as problem:
                plan.append(RecordEvent(key, "BadFault", f"{name}: {problem}"[:500], "Warning"))
        mine = [one for one in board.active if one.startswith(_PREFIX)]
        for name in mine:
            if name not in wanted:
                plan.append(LocalAction(f"clear {name}", partial(board.clear, name)))
        for name, fault in wanted.items():
            if board.active.get(name) != fault:
                plan.append(LocalAction(f"inject {name}", partial(board.inject, name, fault)))
        return plan


def parse_fault(text: str, targets: Targets) -> Fault:
    """Parse a fault as in a cluster file, without its times; ValueError if it is invalid."""
    try:
        value = build(yaml.parse(text, Loader=yaml.CSafeLoader))
        return convert_value(value, FaultSection).fault(targets)
    except FieldProblem as problem:
        raise ValueError(str(problem)) from None
    except (YamlError, yaml.YAMLError) as error:
        raise ValueError(" ".join(str(error).split())[:300]) from None


class FaultSchedule(Controller[int]):
    """Injects and clears the faults of the cluster file; keyed by their index."""

    name = "fault-schedule"

    def __init__(self, context: ControllerContext, faults: tuple[ScheduledFault, ...]) -> None:
        self._context = context
        self._faults = faults
        self._start = context.seconds()

    def first(self) -> Iterable[int]:
        """Return all indexes."""
        return range(len(self._faults))

    def decide(self, key: int) -> Plan:
        """Inject, clear, or wait."""
        planned = self._faults[key]
        since = self._context.seconds() - self._start
        if since < planned.at:
            return [RequeueAfter(planned.at - since)]
        board, name = self._context.faults, planned.name
        if planned.until is not None and since >= planned.until:
            return [LocalAction(f"clear {name}", partial(board.clear, name))]
        plan: Plan = [] if planned.until is None else [RequeueAfter(planned.until - since)]
        if name not in board.active:
            plan.append(LocalAction(f"inject {name}", partial(board.inject, name, planned.fault)))
        return plan


class WorkloadSchedule(Controller[int]):
    """Creates the workloads of the cluster file at their times; keyed by their index."""

    name = "workload-schedule"

    def __init__(
        self, context: ControllerContext, catalog: Catalog, workloads: tuple[WorkloadSpec, ...]
    ) -> None:
        self._context = context
        self._catalog = catalog
        self._workloads = workloads
        self._start = context.seconds()
        self._times = [self._draw(one) for one in workloads]
        self._made = [0] * len(workloads)  # number of objects over all arrivals

    def first(self) -> Iterable[int]:
        """Return the indexes of workloads that are not created at the start."""
        return [i for i, one in enumerate(self._workloads) if one.count or one.at > 0]

    def decide(self, key: int) -> Plan:
        """Create what is due, each once even if it is refused, and requeue for the rest."""
        since = self._context.seconds() - self._start
        times, spec, plan = self._times[key], self._workloads[key], Plan()
        due = bisect_right(times, since)
        for place in range(self._made[key], due * len(spec.objects)):
            number, index = divmod(place, len(spec.objects))
            plan.append(self._create(spec.objects[index], number if spec.count else None))
            plan.append(LocalAction(f"arrival {number}", partial(self._went, key, place)))
        if due < len(times):
            plan.append(RequeueAfter(times[due] - since))
        return plan

    def _went(self, key: int, place: int) -> None:
        self._made[key] = place + 1

    def _draw(self, spec: WorkloadSpec) -> list[float]:
        if not spec.count:
            return [spec.at]
        if spec.random:
            rng = self._context.rng
            return sorted(spec.at + rng.uniform(0, spec.over) for _ in range(spec.count))
        return [spec.at + spec.over * number / spec.count for number in range(spec.count)]

    def _create(self, obj: JsonObject, number: int | None) -> Create:
        return creation(self._catalog, obj, number)


def creation(catalog: Catalog, obj: JsonObject, number: int | None = None) -> Create:
    """Return the creation of an object, or of a numbered copy; KeyError if its kind is unknown."""
    kind = catalog.of_object(obj["apiVersion"], obj["kind"])
    if kind is None:
        raise KeyError(f"{obj['apiVersion']} {obj['kind']}")
    made = clone(obj)
    if kind.namespaced:
        made["metadata"].setdefault("namespace", "default")
    if number is not None:
        made["metadata"]["name"] = f"{obj['metadata']['name']}-{number}"
    return Create(kind.storage, made, once=True)
