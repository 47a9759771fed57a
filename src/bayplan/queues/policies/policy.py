"""The interface of queue policies: what queues deserve, their order, and what is reclaimable.

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
    """The request of a queue, with its weight and bounds."""

    weight: int
    request: Resources
    real_capability: Resources
    guarantee: Resources


class QueuePolicy(ABC):
    """A queue policy: what queues deserve, and the decisions that depend on it."""

    name: ClassVar[str]
    shares_nodes: ClassVar[bool] = False
    """Whether what a queue deserves is a part of the nodes that there are, and changes with them
    and with what is asked of all queues; else it is written in the queue.
    """

    def deserved(
        self, demands: Mapping[str, QueueDemand], total: Resources
    ) -> Mapping[str, Resources]:
        """Return what each queue deserves of the total, if the policy shares nodes."""
        del demands, total
        return {}

    def share(self, deserved: Resources, allocated: Resources) -> float:
        """Return the largest ratio of allocated to deserved; lower shares are served first."""
        return max((allocated[name] / deserved[name] for name in deserved.significant), default=0)

    @abstractmethod
    def comes_last(self, deserved: Resources) -> bool:
        """Whether a queue comes after others of an equal share."""

    @abstractmethod
    def beyond_share(self, deserved: Resources, used: Resources, request: Resources) -> list[str]:
        """Return the resources of which a queue would have more than its share."""

    @abstractmethod
    def may_reclaim(self, quota: Quota, used: Resources, request: Resources) -> bool:
        """Whether others have to leave for a pod with which its queue has so much."""

    @abstractmethod
    def may_leave(
        self, quota: Quota, allocated: Resources, victim: Resources, request: Resources
    ) -> bool:
        """Whether a queue that has so much may lose a pod to another queue that asks for that."""
