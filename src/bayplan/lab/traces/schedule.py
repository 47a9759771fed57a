"""A trace at work: each row becomes a Job or a Deployment, created at its time, read when due."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.control.controller import Controller, Create, Do, Plan, RequeueAfter, Stage
from bayplan.embedded.control.view import DEPLOYMENTS, JOBS
from bayplan.embedded.nodes.kubelet import RUNS_FOR
from bayplan.embedded.simulation.schedule import creation
from bayplan.kube.queueing import GROUP_MIN_MEMBER, QUEUE_ALLOCATION_GATE, QUEUE_NAME_ANNOTATIONS
from bayplan.lab.traces.rows import Row

TTL_SECONDS = 60
IMAGE = "registry.example.com/trace:1"


def priority_class(priority: int) -> JsonObject:
    """The class of a priority."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": class_name(priority)},
        "value": priority,
    }


def class_name(priority: int) -> str:
    """What the class of a priority is called."""
    return f"trace-{'minus-' if priority < 0 else ''}{abs(priority)}"


def workload(row: Row, number: int) -> tuple[str, JsonObject]:
    """The object that makes a row's pods, and where it is kept."""
    name = f"{row.name}-{number}"
    meta: JsonObject = {"name": name, "namespace": "default"}
    template: JsonObject = {
        "metadata": {"labels": {"app": name}, "annotations": _annotations(row)},
        "spec": _pod(row),
    }
    if row.duration is None:
        selector = {"matchLabels": {"app": name}}
        spec: JsonObject = {"replicas": row.replicas, "selector": selector, "template": template}
        return DEPLOYMENTS, {"metadata": meta, "spec": spec}
    template["spec"]["restartPolicy"] = "Never"
    spec = {
        "parallelism": row.replicas,
        "completions": row.replicas,
        "ttlSecondsAfterFinished": TTL_SECONDS,
        "template": template,
    }
    return JOBS, {"metadata": meta, "spec": spec}


def _annotations(row: Row) -> dict[str, str]:
    found = {}
    if row.duration is not None:
        found[RUNS_FOR] = f"{row.duration:.3f}s"
    if row.queue:
        found[QUEUE_NAME_ANNOTATIONS[0]] = row.queue
        found[QUEUE_ALLOCATION_GATE] = "true"
    if row.gang:
        found[GROUP_MIN_MEMBER] = str(row.gang)
    return found


def _pod(row: Row) -> JsonObject:
    container: JsonObject = {"name": "work", "image": IMAGE}
    if row.requests:
        container["resources"] = {"requests": dict(row.requests)}
        # What is no share of a machine but a whole thing has to be limited as it is asked for.
        whole = {name: amount for name, amount in row.requests if "/" in name}
        if whole:
            container["resources"]["limits"] = whole
    spec: JsonObject = {"containers": [container]}
    if row.claims:
        spec["volumes"] = _volumes(row)
    if row.node_selector:
        spec["nodeSelector"] = dict(row.node_selector)
    if row.priority:
        spec["priorityClassName"] = class_name(row.priority)
    return spec


def _volumes(row: Row) -> list[JsonObject]:
    made: list[JsonObject] = []
    for claim in row.claims:
        for _ in range(claim.count):
            spec: JsonObject = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": claim.size}},
            }
            if claim.storage_class:
                spec["storageClassName"] = claim.storage_class
            source = {"volumeClaimTemplate": {"spec": spec}}
            made.append({"name": f"data-{len(made)}", "ephemeral": source})
    return made


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
