"""Creates the workloads of a trace: each row becomes a Job or a Deployment at its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    LocalAction,
    Plan,
    RequeueAfter,
)
from bayplan.embedded.control.view import DEPLOYMENTS, JOBS
from bayplan.embedded.nodes.kubelet import RUNS_FOR
from bayplan.embedded.simulation.schedule import creation
from bayplan.kube.volcano import GROUP_MIN_MEMBER, QUEUE_NAME_ANNOTATIONS, QUEUE_SCHEDULING_GATE
from bayplan.lab.traces.rows import TraceRow

TTL_SECONDS = 60
IMAGE = "registry.example.com/trace:1"


def priority_class(priority: int) -> JsonObject:
    """Return the PriorityClass of a priority."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": class_name(priority)},
        "value": priority,
    }


def class_name(priority: int) -> str:
    """Return the name of the PriorityClass of a priority."""
    return f"trace-{'minus-' if priority < 0 else ''}{abs(priority)}"


def workload(row: TraceRow, number: int) -> tuple[str, JsonObject]:
    """Return the storage and the object that creates the pods of a row."""
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


def _annotations(row: TraceRow) -> dict[str, str]:
    found = {}
    if row.duration is not None:
        found[RUNS_FOR] = f"{row.duration:.3f}s"
    if row.queue:
        found[QUEUE_NAME_ANNOTATIONS[0]] = row.queue
        found[QUEUE_SCHEDULING_GATE] = "true"
    if row.gang:
        found[GROUP_MIN_MEMBER] = str(row.gang)
    return found


def _pod(row: TraceRow) -> JsonObject:
    container: JsonObject = {"name": "work", "image": IMAGE}
    if row.requests:
        container["resources"] = {"requests": dict(row.requests)}
        # Extended resources need limits equal to their requests.
        extended = {name: amount for name, amount in row.requests if "/" in name}
        if extended:
            container["resources"]["limits"] = extended
    spec: JsonObject = {"containers": [container]}
    if row.claims:
        spec["volumes"] = _volumes(row)
    if row.node_selector:
        spec["nodeSelector"] = dict(row.node_selector)
    if row.priority:
        spec["priorityClassName"] = class_name(row.priority)
    return spec


def _volumes(row: TraceRow) -> list[JsonObject]:
    volumes: list[JsonObject] = []
    for claim in row.claims:
        for _ in range(claim.count):
            spec: JsonObject = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": claim.size}},
            }
            if claim.storage_class:
                spec["storageClassName"] = claim.storage_class
            source = {"volumeClaimTemplate": {"spec": spec}}
            volumes.append({"name": f"data-{len(volumes)}", "ephemeral": source})
    return volumes


class TraceSchedule(Controller[int]):
    """Creates the workloads of a trace; it has a single key."""

    name = "trace"

    def __init__(
        self, context: ControllerContext, catalog: Catalog, rows: Iterator[TraceRow]
    ) -> None:
        self._context = context
        self._catalog = catalog
        self._rows = rows
        self._start = context.seconds()
        self._due: deque[TraceRow] = deque()
        self._next = next(rows, None)
        self._number = 0
        self._priorities: set[int] = set()

    def first(self) -> Iterable[int]:
        """Return the single key."""
        return (0,)

    def decide(self, key: int) -> Plan:  # noqa: ARG002 - there is only one
        """Create the workloads that are due, each once even if refused; requeue for the rest."""
        since = self._context.seconds() - self._start
        while self._next is not None and self._next.arrival <= since + 1e-6:
            self._due.append(self._next)
            self._next = next(self._rows, None)
        plan = Plan()
        for index, row in enumerate(self._due):
            plan += self._class_of(row)
            plan.append(Create(*workload(row, self._number + index), once=True))
            plan.append(LocalAction(f"arrival {self._number + index}", self._on_created))
        if self._next is not None:
            plan.append(RequeueAfter(self._next.arrival - since))
        return plan

    def _on_created(self) -> None:
        self._priorities.add(self._due.popleft().priority)
        self._number += 1

    def _class_of(self, row: TraceRow) -> Plan:
        if not row.priority or row.priority in self._priorities:
            return []
        return [creation(self._catalog, priority_class(row.priority))]
