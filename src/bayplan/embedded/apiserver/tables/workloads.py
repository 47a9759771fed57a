"""Columns of workloads."""

from __future__ import annotations

from datetime import datetime

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    age,
    column,
    duration,
    labels,
    parse_time,
    template_images,
)


def _spec(obj: JsonObject) -> JsonObject:
    return obj.get("spec") or {}


def _status(obj: JsonObject) -> JsonObject:
    return obj.get("status") or {}


_IMAGES = (
    column("Containers", lambda obj: template_images(obj)[0], wide=True),
    column("Images", lambda obj: template_images(obj)[1], wide=True),
)
_SELECTOR = column("Selector", lambda obj: labels(_spec(obj).get("selector")), wide=True)


def _count(name: str, part: str, field: str, *, text: bool = False) -> Column:
    def read(obj: JsonObject) -> JsonValue:
        number = (obj.get(part) or {}).get(field) or 0
        return str(number) if text else number

    return column(name, read, type_="string" if text else "integer")


def _of(ready: str, wanted: str = "replicas") -> Column:
    def read(obj: JsonObject) -> JsonValue:
        return f"{_status(obj).get(ready) or 0}/{_spec(obj).get(wanted) or 0}"

    return column("Ready", read)


DEPLOYMENT = (
    NAME,
    _of("readyReplicas"),
    _count("Up-to-date", "status", "updatedReplicas", text=True),
    _count("Available", "status", "availableReplicas", text=True),
    AGE,
    *_IMAGES,
    _SELECTOR,
)
REPLICA_SET = (
    NAME,
    _count("Desired", "spec", "replicas"),
    _count("Current", "status", "replicas"),
    _count("Ready", "status", "readyReplicas"),
    AGE,
    *_IMAGES,
    _SELECTOR,
)
STATEFUL_SET = (NAME, _of("readyReplicas"), AGE, *_IMAGES)
DAEMON_SET = (
    NAME,
    _count("Desired", "status", "desiredNumberScheduled"),
    _count("Current", "status", "currentNumberScheduled"),
    _count("Ready", "status", "numberReady"),
    _count("Up-to-date", "status", "updatedNumberScheduled"),
    _count("Available", "status", "numberAvailable"),
    column("Node Selector", lambda obj: labels(_template_selector(obj))),
    AGE,
    *_IMAGES,
    _SELECTOR,
)


def _template_selector(obj: JsonObject) -> JsonObject:
    pod = (_spec(obj).get("template") or {}).get("spec") or {}
    return pod.get("nodeSelector") or {}


def _job_status(job: JsonObject) -> str:
    for condition in _status(job).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return str(condition["type"])
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return "Suspended" if _spec(job).get("suspend") else "Running"


def _completions(job: JsonObject) -> str:
    done, wanted = _status(job).get("succeeded") or 0, _spec(job).get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = _spec(job).get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: JsonObject, now: datetime) -> str:
    start = parse_time(_status(job).get("startTime"))
    if start is None:
        return ""
    end = parse_time(_status(job).get("completionTime")) or now
    return duration(max(0, int((end - start).total_seconds())))


JOB = (
    NAME,
    column("Status", _job_status),
    column("Completions", _completions),
    Column("Duration", _job_duration),
    AGE,
    *_IMAGES,
    _SELECTOR,
)


def _job_template(obj: JsonObject) -> JsonObject:
    return _spec(obj).get("jobTemplate") or {}


CRON_JOB = (
    NAME,
    column("Schedule", lambda obj: _spec(obj).get("schedule", "")),
    column("Timezone", lambda obj: _spec(obj).get("timeZone") or NONE),
    column("Suspend", lambda obj: bool(_spec(obj).get("suspend")), type_="boolean"),
    column("Active", lambda obj: len(_status(obj).get("active") or ()), type_="integer"),
    Column(
        "Last Schedule",
        lambda obj, now: (
            age(_status(obj).get("lastScheduleTime"), now)
            if _status(obj).get("lastScheduleTime")
            else NONE
        ),
    ),
    AGE,
    column("Containers", lambda obj: template_images(_job_template(obj))[0], wide=True),
    column("Images", lambda obj: template_images(_job_template(obj))[1], wide=True),
    column("Selector", lambda obj: labels(_spec(_job_template(obj)).get("selector")), wide=True),
)
