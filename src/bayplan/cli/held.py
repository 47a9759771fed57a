"""Pods that wait for their queue, whatever the nodes say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from bayplan.kube.meta import KubeObject
from bayplan.kube.queueing import PodGroup, Queue

if TYPE_CHECKING:
    from bayplan.scheduler.batch.inquiry import WaitingGroup

Held: TypeAlias = "Mapping[str, WaitingGroup]"
"""By pod the group with which it waits for its queue."""


def held_by_queues(objects: list[KubeObject]) -> Held:
    """The pods that wait for their queue; none where there are no queues."""
    if not any(isinstance(one, Queue | PodGroup) for one in objects):
        return {}
    from bayplan.cli.queues import survey_of  # noqa: PLC0415 - slow to import, seldom needed

    waiting = (one for one in survey_of(objects).waiting() if one.is_for_queue)
    return {pod: one for one in waiting for pod in one.pods}
