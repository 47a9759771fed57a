"""What a queue policy decides: what queues deserve, who comes first, and what may be taken back.

Quotas, usage and gangs are the same under all policies. A policy is one object of a class in a file
of its own, and an entry in `bayplan.queues.policies.POLICIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bayplan.queues.queue_quota import Quota
from bayplan.queues.resources import Resources


@dataclass(frozen=True, slots=True)
class QueueDemand:
    """What a queue wants, and between which bounds."""

    weight: int
    request: Resources
    real_capability: Resources
    guarantee: Resources


class QueuePolicy(ABC):
    """What queues deserve, and what follows from it."""

    name: ClassVar[str]
    shares_nodes: ClassVar[bool] = False
    """Whether what a queue deserves is a part of the nodes that there are, and changes with them
    and with what is asked of all queues; else it is written in the queue.
    """

    def deserved(
        self, demands: Mapping[str, QueueDemand], total: Resources
    ) -> Mapping[str, Resources]:
        """What queues deserve of the nodes that there are, by name, where they are shared."""
        del demands, total
        return {}

    def share(self, deserved: Resources, allocated: Resources) -> float:
        """How much of what it deserves a queue has; queues with less come first."""
        return max((allocated[name] / deserved[name] for name in deserved.significant), default=0)

    @abstractmethod
    def comes_last(self, deserved: Resources) -> bool:
        """Whether a queue comes after others of an equal share."""

    @abstractmethod
    def beyond_share(self, deserved: Resources, used: Resources, request: Resources) -> list[str]:
        """The resources of which a queue would have more than its share of the nodes."""

    @abstractmethod
    def may_reclaim(self, quota: Quota, used: Resources, request: Resources) -> bool:
        """Whether others have to leave for a pod with which its queue has so much."""

    @abstractmethod
    def may_leave(
        self, quota: Quota, allocated: Resources, victim: Resources, request: Resources
    ) -> bool:
        """Whether a queue that has so much may lose a pod to another queue that asks for that."""
