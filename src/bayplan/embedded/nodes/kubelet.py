"""The kubelets of all machines: they start, run and terminate the pods of working nodes.

A pod waits for its volumes (see `csi`), then for its containers to be created. A pod whose restart
policy is not Always ends after the time in its annotation `simulation.bayplan.io/runs-for`
(default: one minute) with the exit code in `simulation.bayplan.io/exit-code`. A deleted pod ends
after `simulation.bayplan.io/stops-in` (default: one second), at most after its grace period. A pod
that exceeds the node's free resources is refused, as by a real kubelet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

import msgspec

from bayplan.base.durations import DurationError, parse_duration
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Delete,
    Edit,
    Plan,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.facts import TERMINAL, PodFacts, moment
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, NODES, PODS, StoreView
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import milli_value, value
from bayplan.kube.requests import pod_requests
from bayplan.kube.resources import CPU
from bayplan.kube.resources import PODS as POD_COUNT

_decode_pod = msgspec.json.Decoder(Pod).decode


class AcceptedRequests:
    """Requests of the pods that kubelets have accepted."""

    def __init__(self, view: StoreView) -> None:
        self._view = view
        self._used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._counted: dict[ObjectKey, tuple[str, dict[str, int]]] = {}

    def lacking(self, key: ObjectKey, pod: PodFacts) -> str | None:
        """Add a pod; if its node has too little of a resource, return which instead."""
        entry = self._view.store.get(key)
        if entry is None or key in self._counted:
            return None
        wanted = {**pod_requests(_decode_pod(entry.data)), POD_COUNT: 1}
        has, used = self._allocatable(pod.node), self._used[pod.node]
        for name in sorted(wanted):
            if wanted[name] > 0 and used[name] + wanted[name] > has.get(name, 0):
                return name
        self._count(key, pod.node, wanted)
        return None

    def ensure(self, key: ObjectKey, pod: PodFacts) -> None:
        """Add a pod that was accepted before this process started."""
        entry = self._view.store.get(key)
        if entry is not None and key not in self._counted:
            self._count(key, pod.node, {**pod_requests(_decode_pod(entry.data)), POD_COUNT: 1})

    def forget(self, key: ObjectKey) -> None:
        """Remove a pod that has ended or is gone."""
        node, amounts = self._counted.pop(key, ("", {}))
        for name, amount in amounts.items():
            self._used[node][name] -= amount

    def _count(self, key: ObjectKey, node: str, wanted: dict[str, int]) -> None:
        self._counted[key] = (node, wanted)
        for name, amount in wanted.items():
            self._used[node][name] += amount

    def _allocatable(self, name: str) -> dict[str, int]:
        node = self._view.get(NODES, "", name) or {}
        found = (node.get("status") or {}).get("allocatable") or {}
        return {
            name: milli_value(amount) if name == CPU else value(amount)
            for name, amount in found.items()
        }


_READINESS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def creating(pod: JsonObject, now: str, host: str) -> JsonObject:
    """Set the status of a pod whose containers are being created."""
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    status = pod["status"]
    status.update(phase="Pending", hostIP=host, hostIPs=[{"ip": host}], startTime=now)
    status["containerStatuses"] = [_container(one, waiting) for one in pod["spec"]["containers"]]
    return _conditions(pod, now, {"Initialized": "True"}, "ContainersNotReady")


def running(pod: JsonObject, now: str, address: str) -> JsonObject:
    """Set the status of a pod whose containers run."""
    state = {"running": {"startedAt": now}}
    status = pod["status"]
    status.update(phase="Running", podIP=address, podIPs=[{"ip": address}])
    status.setdefault("startTime", now)
    containers = pod["spec"]["containers"]
    status["containerStatuses"] = [_container(one, state, ready=True) for one in containers]
    return _conditions(pod, now, dict.fromkeys(_READINESS, "True"), "")


def ended(pod: JsonObject, now: str, exit_code: int) -> JsonObject:
    """Set the status of a pod whose containers have terminated."""
    reason = "Error" if exit_code else "Completed"
    before = _started(pod, now)
    state = {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": before,
            "finishedAt": now,
        }
    }
    pod["status"]["phase"] = "Failed" if exit_code else "Succeeded"
    pod["status"]["containerStatuses"] = [
        _container(one, state) for one in pod["spec"]["containers"]
    ]
    held = {"Initialized": "True"}
    return _conditions(pod, now, held, "PodFailed" if exit_code else "PodCompleted")


def refused(pod: JsonObject, now: str, reason: str, message: str) -> JsonObject:
    """Set the status of a pod that the kubelet refuses."""
    pod["status"].update(phase="Failed", reason=reason, message=message, startTime=now)
    return pod


def not_ready(pod: JsonObject, now: str) -> JsonObject:
    """Set the conditions of a pod whose node is unreachable."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            condition.update(status="False", reason="NodeNotReady", lastTransitionTime=now)
    return pod


def _started(pod: JsonObject, now: str) -> str:
    for container in pod["status"].get("containerStatuses") or ():
        started = (container.get("state") or {}).get("running") or {}
        if started:
            return str(started.get("startedAt", now))
    return now


def _container(spec: JsonObject, state: JsonObject, *, ready: bool = False) -> JsonObject:
    image = spec.get("image") or ""
    return {
        "name": spec["name"],
        "image": image,
        "imageID": f"simulated://{image}" if "waiting" not in state else "",
        "state": state,
        "lastState": {},
        "ready": ready,
        "started": ready,
        "restartCount": 0,
    }


def _conditions(pod: JsonObject, now: str, held: dict[str, str], reason: str) -> JsonObject:
    """Set the readiness conditions; unchanged ones keep their transition time."""
    status = pod["status"]
    before = {one["type"]: one for one in status.get("conditions") or ()}
    for type_ in _READINESS:
        wanted = held.get(type_, "False")
        old = before.get(type_)
        if old is None or old["status"] != wanted:
            old = {"type": type_, "status": wanted, "lastTransitionTime": now}
        old.pop("reason", None)
        if wanted != "True" and reason:
            old["reason"] = reason
        before[type_] = old
    status["conditions"] = list(before.values())
    return pod


RUNS_FOR = "simulation.bayplan.io/runs-for"
EXIT_CODE = "simulation.bayplan.io/exit-code"
STOPS_IN = "simulation.bayplan.io/stops-in"
CREATE_SECONDS = 2.0
RUN_SECONDS = 60.0
STOP_SECONDS = 1.0
STOPPED_CODE = 143
"""Exit code of a container that was stopped."""


class VolumeManager(Protocol):
    """Knows whether a pod's volumes are attached."""

    def is_ready(self, pod: PodFacts) -> bool:
        """Return whether all volumes of the pod are attached to its node."""
        ...

    def concerned(self, change: WatchCacheEvent) -> list[ObjectKey]:
        """Return the pods that a change of a claim or an attachment may concern."""
        ...


class Kubelets(Controller[ObjectKey]):
    """The kubelets of all nodes; keyed by pod."""

    name = "kubelet"
    storages = (PODS, CLAIMS, ATTACHMENTS)

    def __init__(self, context: ControllerContext, fleet: Fleet, volumes: VolumeManager) -> None:
        self._context = context
        self._fleet = fleet
        self._volumes = volumes
        self._fitting = AcceptedRequests(context.view)
        self._starts: dict[str, float] = {}
        self._addresses = 0

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return bound pods, and pods whose volumes changed."""
        entry = change.entry
        if entry.key.storage != PODS:
            return self._volumes.concerned(change)
        if change.deleted or entry.fields.get("status.phase") in TERMINAL:
            self._starts.pop(entry.uid, None)
            self._fitting.forget(entry.key)
            if change.deleted or not entry.is_terminating:
                return ()
        return (entry.key,) if entry.fields.get("spec.nodeName") else ()

    def decide(self, key: ObjectKey) -> Plan:
        """Return the pod's next step, if its node works."""
        pod = self._context.view.pods.get(key)
        if pod is None or not pod.node or self._fleet.working(pod.node) is None:
            return []
        if pod.status.start_time is not None and not pod.is_terminal:
            self._fitting.ensure(key, pod)
        if pod.is_terminating:
            return self._end_deleted(key, pod)
        if pod.phase == "Pending":
            return self._start(key, pod)
        return self._run(key, pod) if pod.phase == "Running" else []

    def _end_deleted(self, key: ObjectKey, pod: PodFacts) -> Plan:
        grace = pod.metadata.deletion_grace_period_seconds or 0
        requested = moment(pod.metadata.deletion_timestamp) - grace
        stops = min(grace, _seconds(pod, STOPS_IN, STOP_SECONDS)) if pod.phase == "Running" else 0
        left = requested + stops - self._context.seconds()
        if left > 0:
            return [RequeueAfter(left)]
        last = [self._stopped(key)] if pod.metadata.finalizers and not pod.is_terminal else []
        return [*last, Delete(key, pod.uid, 0)]

    def _stopped(self, key: ObjectKey) -> Update:
        """Set the status of a stopped pod, if a finalizer keeps it."""
        now = self._context.now()
        return self._status(key, lambda obj: ended(obj, now, STOPPED_CODE))

    def _start(self, key: ObjectKey, pod: PodFacts) -> Plan:
        if pod.status.start_time is None:
            return self._accept(key, pod)
        if not self._volumes.is_ready(pod):
            self._starts.pop(pod.uid, None)
            return []
        now = self._context.seconds()
        starts = self._starts.setdefault(pod.uid, now + self._context.about(CREATE_SECONDS))
        if now < starts:
            return [RequeueAfter(starts - now)]
        event = RecordEvent(key, "Started", "Started containers", source="kubelet")
        return [self._status(key, self._running()), event]

    def _accept(self, key: ObjectKey, pod: PodFacts) -> Plan:
        lacking = self._fitting.lacking(key, pod)
        now, host = self._context.now(), _host(pod.node)
        if lacking is None:
            return [self._status(key, lambda obj: creating(obj, now, host))]
        reason, message = f"OutOf{lacking}", f"Node didn't have enough resource: {lacking}"
        event = RecordEvent(key, reason, message, "Warning", "kubelet")
        refuse = self._status(key, lambda obj: refused(obj, now, reason, message))
        return [refuse, event]

    def _run(self, key: ObjectKey, pod: PodFacts) -> Plan:
        if pod.spec.restart_policy == "Always":
            return self._recover(key, pod)
        started = moment(pod.ready_since or pod.status.start_time or self._context.now())
        left = started + _seconds(pod, RUNS_FOR, RUN_SECONDS) - self._context.seconds()
        if left > 0:
            return [*self._recover(key, pod), RequeueAfter(left)]
        now, code = self._context.now(), _exit_code(pod)
        return [self._status(key, lambda obj: ended(obj, now, code))]

    def _recover(self, key: ObjectKey, pod: PodFacts) -> Plan:
        """Set a pod ready again whose node is back."""
        return [] if pod.is_ready else [self._status(key, self._running())]

    def _running(self) -> Edit:
        self._addresses += 1
        number, now = self._addresses, self._context.now()
        address = f"10.{64 + (number >> 16) % 64}.{number >> 8 & 255}.{number & 255}"
        return lambda obj: running(obj, now, address)

    def _status(self, key: ObjectKey, edit: Edit) -> Update:
        return Update(key, edit, "status")


def _seconds(pod: PodFacts, annotation: str, default: float) -> float:
    """Return the duration in an annotation; the default if it is invalid."""
    text = pod.annotation(annotation)
    try:
        return parse_duration(text) if text else default
    except DurationError:
        return default


def _exit_code(pod: PodFacts) -> int:
    text = pod.annotation(EXIT_CODE)
    return int(text) if text.isdigit() else 0


def _host(node: str) -> str:
    """Return the same address for the same node in every run."""
    number = int(node.rpartition("-")[2]) if node.rpartition("-")[2].isdigit() else 1
    return f"10.0.{number >> 8 & 255}.{number & 255}"
