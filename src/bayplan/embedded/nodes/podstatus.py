"""The statuses that a kubelet writes for a pod, from its start to its end."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject

_READINESS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def creating(pod: JsonObject, now: str, host: str) -> JsonObject:
    """The pod is on the node and waits for its volumes and images."""
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    status = pod["status"]
    status.update(phase="Pending", hostIP=host, hostIPs=[{"ip": host}], startTime=now)
    status["containerStatuses"] = [_container(one, waiting) for one in pod["spec"]["containers"]]
    return _conditions(pod, now, {"Initialized": "True"}, "ContainersNotReady")


def running(pod: JsonObject, now: str, address: str) -> JsonObject:
    """All containers run."""
    state = {"running": {"startedAt": now}}
    status = pod["status"]
    status.update(phase="Running", podIP=address, podIPs=[{"ip": address}])
    status.setdefault("startTime", now)
    containers = pod["spec"]["containers"]
    status["containerStatuses"] = [_container(one, state, ready=True) for one in containers]
    return _conditions(pod, now, dict.fromkeys(_READINESS, "True"), "")


def ended(pod: JsonObject, now: str, exit_code: int) -> JsonObject:
    """All containers have ended and will not start again."""
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
    """The kubelet does not take the pod."""
    pod["status"].update(phase="Failed", reason=reason, message=message, startTime=now)
    return pod


def not_ready(pod: JsonObject, now: str) -> JsonObject:
    """The pod's node was not heard of: nobody knows whether the pod is well."""
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
    """Set the readiness conditions; one that stays as it was keeps its time."""
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
