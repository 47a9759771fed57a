"""Builders of queues and pod groups."""

from __future__ import annotations

from typing import Self

from bayplan.kube.meta import Quantity
from bayplan.kube.volcano import GROUP_NAME_ANNOTATIONS, PodGroup, Queue, QueueState
from tests.builders.base import DEFAULT, Builder
from tests.builders.pods import PodBuilder


class QueueBuilder(Builder[Queue]):
    """A queue, open."""

    def __init__(self, name: str) -> None:
        super().__init__(Queue(), name)
        self._built.status.state = "Open"

    def capability(self, **amounts: Quantity) -> Self:
        """Limit it."""
        self._built.spec.capability = dict(amounts)
        return self

    def deserved(self, **amounts: Quantity) -> Self:
        """Say what it should have."""
        self._built.spec.deserved = dict(amounts)
        return self

    def guarantee(self, **amounts: Quantity) -> Self:
        """Keep something for it."""
        self._built.spec.guarantee.resource = dict(amounts)
        return self

    def weight(self, weight: int) -> Self:
        """Say how it shares with others."""
        self._built.spec.weight = weight
        return self

    def parent(self, name: str) -> Self:
        """Put it below another."""
        self._built.spec.parent = name
        return self

    def priority(self, priority: int) -> Self:
        """Let it go before others."""
        self._built.spec.priority = priority
        return self

    def reclaimable(self, reclaimable: bool) -> Self:
        """Say whether others may take back what it has too much of."""
        self._built.spec.reclaimable = reclaimable
        return self

    def fifo(self) -> Self:
        """Let nobody overtake in it."""
        self._built.spec.dequeue_strategy = "fifo"
        return self

    def state(self, state: QueueState) -> Self:
        """Open or close it."""
        self._built.status.state = state
        return self


class PodGroupBuilder(Builder[PodGroup]):
    """A group of pods, not yet admitted."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(PodGroup(), name, namespace)
        self._built.spec.min_member = 1
        self._built.status.phase = "Pending"

    def queue(self, name: str) -> Self:
        """Put it into a queue."""
        self._built.spec.queue = name
        return self

    def min_member(self, number: int) -> Self:
        """Say how many pods it needs to start."""
        self._built.spec.min_member = number
        return self

    def min_task_member(self, **numbers: int) -> Self:
        """Say how many pods of each task it needs to start."""
        self._built.spec.min_task_member = dict(numbers)
        return self

    def min_resources(self, **amounts: Quantity) -> Self:
        """Say what it needs to start."""
        self._built.spec.min_resources = dict(amounts)
        return self

    def priority_class(self, name: str) -> Self:
        """Give it a priority."""
        self._built.spec.priority_class_name = name
        return self

    def phase(self, phase: str) -> Self:
        """Say where it stands."""
        self._built.status.phase = phase
        return self

    def member(self, pod: PodBuilder) -> PodBuilder:
        """Put a pod into it."""
        pod.namespace(self._built.metadata.namespace)
        return pod.annotation(GROUP_NAME_ANNOTATIONS[0], self._built.metadata.name)


def make_queue(name: str) -> QueueBuilder:
    """Start a queue."""
    return QueueBuilder(name)


def make_pod_group(name: str, namespace: str = DEFAULT) -> PodGroupBuilder:
    """Start a pod group that needs one pod."""
    return PodGroupBuilder(name, namespace)
