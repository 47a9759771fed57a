"""A trace from a recording: when pods came, how long they ran, what they asked for.

Pods that were there when the recording began arrive at its beginning; those that had not ended when
it did run on. Pods of DaemonSets come with their nodes and are left out. Pods of one controller
that must start together, and came together, are one row.
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
from bayplan.kube.queueing import GROUP_MIN_MEMBER, QUEUE_NAME_ANNOTATIONS
from bayplan.kube.requests import pod_requests_milli
from bayplan.kube.storage import PersistentVolumeClaim
from bayplan.lab.traces.rows import MAX_BYTES, MOST_REPLICAS, READERS, TraceError
from bayplan.recordings import Identity, Recorded, Recording, RecordingError

_ENDED = frozenset({"Succeeded", "Failed"})
_MOST_DIGITS = 9
_LEFT_OUT = frozenset({"ephemeral-storage", "pods"})
Cells = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Life:
    pod: Pod
    arrival: float
    began: float | None = None
    ended: float | None = None


def trace_of(path: Path, tell: Callable[[str], None] = lambda _: None) -> str:
    """The trace that a recording comes to, as CSV; TraceError if it cannot be read, or if there is
    nothing in it. If its end cannot be read, how far it goes is told.
    """
    try:
        with Recording(path) as recording:
            _refuse_nothing(path, recording)
            lives, claims = _lives(recording)
            if recording.cut:
                far = f"it goes as far as {format_duration(recording.seconds)} of what was recorded"
                tell(f"{path}: the last {recording.cut} bytes cannot be read; {far}")
    except RecordingError as problem:
        raise TraceError(str(problem)) from None
    except OSError as problem:
        raise TraceError(f"{path}: {problem.strerror}") from None
    try:
        text = _text(lives, claims)
    except QuantityError as problem:
        raise TraceError(f"{path}: a pod asks for what is no amount: {problem}") from None
    if len(text) > MAX_BYTES:
        raise TraceError(f"{path}: its trace is larger than {MAX_BYTES} bytes")
    return text


def _refuse_nothing(path: Path, recording: Recording) -> None:
    if next(recording.after(0), None) is None:
        cut = f": it was cut at byte {recording.bytes - recording.cut}" if recording.cut else ""
        raise TraceError(f"{path}: nothing that happened is in it{cut}")


def _lives(
    recording: Recording,
) -> tuple[list[_Life], dict[str, PersistentVolumeClaim]]:
    """Every pod's life, and the claims that there have been."""
    lives: dict[str, _Life] = {}
    claims: dict[str, PersistentVolumeClaim] = {}
    present: dict[Identity, str] = {}
    for change in recording.after(0):
        _follow(lives, present, change.identity, change.object, change.at)
        if isinstance(change.object, PersistentVolumeClaim):
            claims[change.object.key] = change.object
    return list(lives.values()), claims


def _follow(
    lives: dict[str, _Life],
    present: dict[Identity, str],
    identity: Identity,
    obj: Recorded | None,
    at: float,
) -> None:
    if obj is None:
        life = lives.get(present.pop(identity, ""))
        if life is not None and life.ended is None:
            life.ended = at
    elif isinstance(obj, Pod) and not _is_of_daemon_set(obj):
        present[identity] = obj.metadata.uid
        life = lives.setdefault(obj.metadata.uid, _Life(obj, at))
        if life.began is None and obj.status.phase in ("Running", "Succeeded"):
            life.began = at
        if life.ended is None and obj.status.phase in _ENDED:
            life.ended = at


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(one.controller and one.kind == "DaemonSet" for one in pod.metadata.owner_references)


def _text(lives: list[_Life], claims: dict[str, PersistentVolumeClaim]) -> str:
    """Rows in the order of arrival; what has to start together is put together."""
    gangs: Counter[tuple[float, str, Cells]] = Counter()
    order: list[tuple[float, str, Cells]] = []
    for number, life in enumerate(sorted(lives, key=lambda one: (one.arrival, one.pod.key))):
        gang = _gang(life.pod)
        owner = next((one.uid for one in life.pod.metadata.owner_references if one.controller), "")
        alike = owner if owner and gang else str(number)
        key = (life.arrival, alike, _cells(life, claims, gang))
        if not gangs[key]:
            order.append(key)
        gangs[key] += 1
    out = io.StringIO()
    writer = csv.DictWriter(out, list(READERS), lineterminator="\n")
    writer.writeheader()
    for key in order:
        writer.writerow(_row(key[0], dict(key[2]), gangs[key]))
    return out.getvalue()


def _gang(pod: Pod) -> str:
    """How many must start together, as it says; nothing if that is no number that can be."""
    said = pod.metadata.annotations.get(GROUP_MIN_MEMBER, "")
    return said if said.isdecimal() and len(said) <= _MOST_DIGITS else ""


def _row(arrival: float, cells: dict[str, str], replicas: int) -> dict[str, str]:
    replicas = min(replicas, MOST_REPLICAS)
    gang = cells.get("gang", "")
    if gang:
        cells["gang"] = str(max(1, min(int(gang), replicas)))
    return {**cells, "arrival": f"{arrival:.3f}", "replicas": str(replicas)}


def _cells(life: _Life, claims: dict[str, PersistentVolumeClaim], gang: str) -> Cells:
    pod = life.pod
    found = {"name": "recorded", "gang": gang if gang and int(gang) > 1 else ""}
    if life.ended is not None:
        ran = 0.0 if life.began is None else life.ended - life.began
        found["duration"] = f"{ran:.3f}"
    further = []
    for name, milli in sorted(pod_requests_milli(pod).items()):
        if name in ("cpu", "memory"):
            found[name] = f"{milli}m" if name == "cpu" else str(-(-milli // 1000))
        elif name not in _LEFT_OUT:
            further.append(f"{name}={-(-milli // 1000)}")
    annotations = pod.metadata.annotations
    found["requests"] = ";".join(further)
    found["claims"] = ";".join(_claims(pod, claims))
    found["queue"] = next(
        (annotations[one] for one in QUEUE_NAME_ANNOTATIONS if one in annotations), ""
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
            counted[_said(claims.get(f"{pod.namespace}/{name}"))] += 1
    return [f"{count}*{said}" for said, count in sorted(counted.items())]


def _said(claim: PersistentVolumeClaim | None) -> str:
    """The class and size of a claim; what nobody knows of is a small one of the default class."""
    if claim is None:
        return "1Gi"
    size = str(claim.spec.resources.requests.get("storage", "1Gi"))
    storage_class = claim.spec.storage_class_name or ""
    return f"{storage_class}:{size}" if storage_class else size
