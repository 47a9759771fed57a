"""A trace from a recording: when pods were created, how long they ran, what they requested.

Pods that existed when the recording began arrive at its start; pods that had not ended at its end
run on. DaemonSet pods are omitted, since they come with their nodes. Pods of one controller that
must start together and were created together are one row.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bayplan.base.durations import format_duration
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import QuantityError
from bayplan.kube.requests import pod_requests_milli
from bayplan.kube.storage import PersistentVolumeClaim
from bayplan.kube.volcano import GROUP_MIN_MEMBER, QUEUE_NAME_ANNOTATIONS
from bayplan.lab.traces.rows import MAX_BYTES, MAX_REPLICAS, PARSERS, TraceError
from bayplan.recordings import ObjectIdentity, RecordedObject, Recording, RecordingError

_ENDED = frozenset({"Succeeded", "Failed"})
_MAX_DIGITS = 9
_OMITTED_RESOURCES = frozenset({"ephemeral-storage", "pods"})
Cells = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Lifetime:
    pod: Pod
    arrival: float
    started: float | None = None
    ended: float | None = None


def trace_from_recording(path: Path, warn: Callable[[str], None] = lambda _: None) -> str:
    """Return the trace of a recording as CSV.

    Raise TraceError if it cannot be read or is empty. If only its end cannot be read, warn.
    """
    try:
        with Recording(path) as recording:
            _refuse_empty(path, recording)
            lifetimes, claims = _lifetimes(recording)
            if recording.truncated_bytes:
                length = f"the trace ends after {format_duration(recording.seconds)}"
                warn(f"{path}: the last {recording.truncated_bytes} bytes cannot be read; {length}")
    except RecordingError as problem:
        raise TraceError(str(problem)) from None
    except OSError as problem:
        raise TraceError(f"{path}: {problem.strerror}") from None
    try:
        text = _text(lifetimes, claims)
    except QuantityError as problem:
        raise TraceError(f"{path}: a pod has an invalid request: {problem}") from None
    if len(text) > MAX_BYTES:
        raise TraceError(f"{path}: its trace is larger than {MAX_BYTES} bytes")
    return text


def _refuse_empty(path: Path, recording: Recording) -> None:
    if next(recording.after(0), None) is None:
        cut = (
            f": truncated at byte {recording.bytes - recording.truncated_bytes}"
            if recording.truncated_bytes
            else ""
        )
        raise TraceError(f"{path}: it has no changes{cut}")


def _lifetimes(
    recording: Recording,
) -> tuple[list[_Lifetime], dict[str, PersistentVolumeClaim]]:
    """Return the lifetime of every pod, and all claims."""
    lifetimes: dict[str, _Lifetime] = {}
    claims: dict[str, PersistentVolumeClaim] = {}
    present: dict[ObjectIdentity, str] = {}
    for change in recording.after(0):
        _follow(lifetimes, present, change.identity, change.object, change.at)
        if isinstance(change.object, PersistentVolumeClaim):
            claims[change.object.key] = change.object
    return list(lifetimes.values()), claims


def _follow(
    lifetimes: dict[str, _Lifetime],
    present: dict[ObjectIdentity, str],
    identity: ObjectIdentity,
    obj: RecordedObject | None,
    at: float,
) -> None:
    if obj is None:
        life = lifetimes.get(present.pop(identity, ""))
        if life is not None and life.ended is None:
            life.ended = at
    elif isinstance(obj, Pod) and not _is_of_daemon_set(obj):
        present[identity] = obj.metadata.uid
        life = lifetimes.setdefault(obj.metadata.uid, _Lifetime(obj, at))
        if life.started is None and obj.status.phase in ("Running", "Succeeded"):
            life.started = at
        if life.ended is None and obj.status.phase in _ENDED:
            life.ended = at


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(
        owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references
    )


def _text(lifetimes: list[_Lifetime], claims: dict[str, PersistentVolumeClaim]) -> str:
    """Return rows in the order of arrival; pods of a gang are one row."""
    gangs: Counter[tuple[float, str, Cells]] = Counter()
    order: list[tuple[float, str, Cells]] = []
    for number, life in enumerate(sorted(lifetimes, key=lambda one: (one.arrival, one.pod.key))):
        gang = _gang(life.pod)
        owner = next((one.uid for one in life.pod.metadata.owner_references if one.controller), "")
        group = owner if owner and gang else str(number)
        key = (life.arrival, group, _cells(life, claims, gang))
        if not gangs[key]:
            order.append(key)
        gangs[key] += 1
    out = io.StringIO()
    writer = csv.DictWriter(out, list(PARSERS), lineterminator="\n")
    writer.writeheader()
    for key in order:
        writer.writerow(_row(key[0], dict(key[2]), gangs[key]))
    return out.getvalue()


def _gang(pod: Pod) -> str:
    """Return how many pods must start together; empty if the annotation is not a number."""
    text = pod.metadata.annotations.get(GROUP_MIN_MEMBER, "")
    return text if text.isdecimal() and len(text) <= _MAX_DIGITS else ""


def _row(arrival: float, cells: dict[str, str], replicas: int) -> dict[str, str]:
    replicas = min(replicas, MAX_REPLICAS)
    gang = cells.get("gang", "")
    if gang:
        cells["gang"] = str(max(1, min(int(gang), replicas)))
    return {**cells, "arrival": f"{arrival:.3f}", "replicas": str(replicas)}


def _cells(life: _Lifetime, claims: dict[str, PersistentVolumeClaim], gang: str) -> Cells:
    pod = life.pod
    found = {"name": "recorded", "gang": gang if gang and int(gang) > 1 else ""}
    if life.ended is not None:
        ran = 0.0 if life.started is None else life.ended - life.started
        found["duration"] = f"{ran:.3f}"
    others = []
    for name, milli in sorted(pod_requests_milli(pod).items()):
        if name in ("cpu", "memory"):
            found[name] = f"{milli}m" if name == "cpu" else str(-(-milli // 1000))
        elif name not in _OMITTED_RESOURCES:
            others.append(f"{name}={-(-milli // 1000)}")
    annotations = pod.metadata.annotations
    found["requests"] = ";".join(others)
    found["claims"] = ";".join(_claims(pod, claims))
    found["queue"] = next(
        (annotations[key] for key in QUEUE_NAME_ANNOTATIONS if key in annotations), ""
    )
    found["priority"] = str(pod.spec.priority) if pod.spec.priority else ""
    found["nodeSelector"] = ";".join(f"{k}={v}" for k, v in sorted(pod.spec.node_selector.items()))
    return tuple(found.items())


def _claims(pod: Pod, claims: dict[str, PersistentVolumeClaim]) -> list[str]:
    counted: Counter[str] = Counter()
    for volume in pod.spec.volumes:
        name = None
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
        if name is not None:
            counted[_claim_text(claims.get(f"{pod.namespace}/{name}"))] += 1
    return [f"{count}*{claim}" for claim, count in sorted(counted.items())]


def _claim_text(claim: PersistentVolumeClaim | None) -> str:
    """Return the class and size of a claim; an unknown claim is 1Gi of the default class."""
    if claim is None:
        return "1Gi"
    size = str(claim.spec.resources.requests.get("storage", "1Gi"))
    storage_class = claim.spec.storage_class_name or ""
    return f"{storage_class}:{size}" if storage_class else size
