"""Columns of pods: readiness, status, restarts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.tables.columns import AGE, NAME, NONE, Column, age, column

_OVER = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def _spec(pod: JsonObject) -> JsonObject:
    return pod.get("spec") or {}


def _status(pod: JsonObject) -> JsonObject:
    return pod.get("status") or {}


def _is_true(pod: JsonObject, kind: str) -> bool:
    conditions = _status(pod).get("conditions") or ()
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


@dataclass(slots=True)
class _Restarts:
    """Restart count of the containers, and the time of the last restart."""

    count: int = 0
    last: str = ""

    def note(self, container: JsonObject) -> None:
        """Add a container."""
        self.count += container.get("restartCount") or 0
        ended = (container.get("lastState") or {}).get("terminated") or {}
        self.last = max(self.last, ended.get("finishedAt") or "")

    def cell(self, now: datetime) -> str:
        """Return the cell."""
        ago = f" ({age(self.last, now)} ago)" if self.count and self.last else ""
        return f"{self.count}{ago}"


def _ending(ended: JsonObject) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


class PodView:
    """The row of a pod."""

    def __init__(self, pod: JsonObject) -> None:
        status, spec = _status(pod), _spec(pod)
        self._pod = pod
        self._first = spec.get("initContainers") or []
        self._staying = {c["name"] for c in self._first if c.get("restartPolicy") == "Always"}
        self._total = len(spec.get("containers") or ()) + len(self._staying)
        self._up = 0
        self.restarts = _Restarts()
        self.word: str = status.get("reason") or status.get("phase") or ""
        for condition in status.get("conditions") or ():
            if condition.get("type") == "PodScheduled" and _is_gated(condition):
                self.word = "SchedulingGated"
        staying = _Restarts()
        if not self._begin(staying) or _is_true(pod, "Initialized"):
            self.restarts = staying
            self._go_on()
        self._end()

    @property
    def ready(self) -> str:
        """Return the number of ready containers and of all."""
        return f"{self._up}/{self._total}"

    def _begin(self, staying: _Restarts) -> bool:
        """Process init containers; returns whether the pod still waits for one."""
        for index, one in enumerate(_status(self._pod).get("initContainerStatuses") or ()):
            self.restarts.note(one)
            stays = one.get("name") in self._staying
            if stays:
                staying.note(one)
            state = one.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting") or {}
            if ended is not None and not ended.get("exitCode"):
                continue
            if stays and one.get("started"):
                self._up += bool(one.get("ready"))
                continue
            reason = waiting.get("reason") or ""
            if ended is not None:
                self.word = f"Init:{_ending(ended)}"
            elif reason and reason != "PodInitializing":
                self.word = f"Init:{reason}"
            else:
                self.word = f"Init:{index}/{len(self._first)}"
            return True
        return False

    def _go_on(self) -> None:
        """Process the regular containers."""
        running, failure = False, ""
        for one in reversed(_status(self._pod).get("containerStatuses") or ()):
            self.restarts.note(one)
            state = one.get("state") or {}
            ended = state.get("terminated")
            if (state.get("waiting") or {}).get("reason"):
                self.word = state["waiting"]["reason"]
            elif ended is not None:
                self.word = _ending(ended)
                failure = self.word if ended.get("exitCode") else failure
            elif one.get("ready") and state.get("running") is not None:
                running = True
                self._up += 1
        if self.word == "Completed":
            if running and _is_true(self._pod, "Ready"):
                self.word = "Running"
            else:
                self.word = failure or ("NotReady" if running else self.word)

    def _end(self) -> None:
        status = _status(self._pod)
        if not self._pod["metadata"].get("deletionTimestamp"):
            return
        if status.get("reason") == "NodeLost":
            self.word = "Unknown"
        elif status.get("phase") not in _OVER:
            self.word = "Terminating"


def _is_gated(condition: JsonObject) -> bool:
    return condition.get("reason") == "SchedulingGated"


def _address(pod: JsonObject) -> str:
    addresses: list[JsonObject] = _status(pod).get("podIPs") or [{}]
    return addresses[0].get("ip") or NONE


def _gates(pod: JsonObject) -> str:
    gates = _spec(pod).get("readinessGates")
    if not gates:
        return NONE
    return f"{sum(_is_true(pod, gate.get('conditionType')) for gate in gates)}/{len(gates)}"


def pod_conditions(pod: JsonObject) -> list[JsonObject]:
    """Return the conditions of a pod's row: whether it has ended."""
    phase = _status(pod).get("phase")
    if phase not in _OVER:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _OVER[phase]}]


POD = (
    NAME,
    column("Ready", lambda pod: PodView(pod).ready),
    column("Status", lambda pod: PodView(pod).word),
    Column("Restarts", lambda pod, now: PodView(pod).restarts.cell(now)),
    AGE,
    column("IP", _address, wide=True),
    column("Node", lambda pod: _spec(pod).get("nodeName") or NONE, wide=True),
    column("Nominated Node", lambda pod: _status(pod).get("nominatedNodeName") or NONE, wide=True),
    column("Readiness Gates", _gates, wide=True),
)
