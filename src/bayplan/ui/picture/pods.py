"""Rows of pods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod
from bayplan.kube.resources import CPU, MEMORY
from bayplan.kube.times import read_time
from bayplan.kube.volcano import GROUP_NAME_ANNOTATIONS, QUEUE_NAME_ANNOTATIONS, PodGroup
from bayplan.queues.members import group_key_of, queue_name_of
from bayplan.ui import texts
from bayplan.ui.tables import Row

STUCK_AFTER = timedelta(minutes=5)
"""A bound pod that does not run after this time is stuck."""
SCHEDULED = "PodScheduled"


def pod_row(record: PodRecord, priority: int, state: str, queue: str, upcoming: str) -> Row:
    """Return the row of a pod that has not ended."""
    pod, requests = record.pod, record.signature.requests
    return [
        texts.identity(record.key),
        texts.identity(record.node),
        requests.get(CPU, 0),
        requests.get(MEMORY, 0),
        len(record.volumes),
        owner_of(pod),
        priority,
        texts.name(pod.status.phase),
        state,
        queue,
        upcoming,
    ]


def owner_of(pod: Pod) -> str:
    """Return `Kind name` of the controller of a pod; empty if it has none."""
    owner = pod.metadata.controller
    return texts.name(f"{owner.kind} {owner.name}") if owner is not None else ""


def state_of(pod: Pod, node: str, now: datetime) -> str:
    """Return the state of a pod."""
    if pod.is_terminating:
        return "leaving"
    if not node:
        return "gated" if pod.spec.scheduling_gates else "waiting"
    if pod.status.phase == "Running":
        return "running"
    stuck = stuck_from(pod)
    return "stuck" if stuck is not None and now >= stuck else "starting"


def stuck_from(pod: Pod) -> datetime | None:
    """Return the time from which a bound pod counts as stuck; None if it is unknown."""
    began = [one.last_transition_time for one in pod.status.conditions if one.type == SCHEDULED]
    times = (*began, pod.status.start_time, pod.metadata.creation_timestamp)
    since = next((moment for one in times if (moment := read_time(one)) is not None), None)
    return since + STUCK_AFTER if since is not None else None


def queue_of(pod: Pod, groups: Mapping[str, PodGroup]) -> str:
    """Return the queue of a pod; empty if it has none."""
    group = groups.get(group_key_of(pod)) if groups else None
    if group is not None:
        return texts.name(group.spec.queue)
    annotations = pod.metadata.annotations
    asks = any(key in annotations for key in (*QUEUE_NAME_ANNOTATIONS, *GROUP_NAME_ANNOTATIONS))
    return texts.name(queue_name_of(pod)) if asks else ""
