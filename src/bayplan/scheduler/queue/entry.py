"""A pod in the queue, and what its tries so far have come to."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from enum import Enum

from bayplan.kube.pods import Pod


class SubQueue(Enum):
    """The sub-queue that a pod is in; the values are kube-scheduler's labels of metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    HELD = "held"
    IN_FLIGHT = "in-flight"
    GONE = "gone"

    # Places are looked up many times for every pod; an enumeration's own hash is slow.
    __hash__ = object.__hash__


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod that waits to be placed. All times are seconds of one monotonic clock."""

    pod: Pod
    priority: int
    number: int
    """Its number in the order of arrival, the last sort key."""
    added: float
    """When it first came, for how long it has waited in all."""
    since: float
    """When it came, or came back from its last try: the older goes first."""
    subqueue: SubQueue = SubQueue.GONE
    attempts: int = 0
    refusals: int = 0
    """Tries that ended in no node fitting."""
    failures: int = 0
    """Tries in a row that ended in an error, such as a bind that the server did not take."""
    plugins: frozenset[str] = frozenset()
    """The plugins that refused it last; empty if it has not been refused."""
    signature: Hashable = None
    """Pods of equal signature are helped by the same events; None if it has no equal."""
    marks: Collection[str] = ()
    """What distinguishes it from others of its signature."""
    first_try: float | None = None
    stamp: int = 0
    """Changes with every move, so that what a heap still holds of an earlier place is known."""

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def order(self) -> tuple[int, float, int]:
        """Sorts the one to go first to the front: by priority, then by age."""
        return (-self.priority, self.since, self.number)

    @property
    def group(self) -> Hashable:
        """The key of the pods that are asked together."""
        return self.signature if self.signature is not None else ("only", self.uid)
