"""Problems of queues and groups, and why groups wait: values, never exceptions."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a queue's own object; the other queues go on."""

    queue: str
    text: str

    def __str__(self) -> str:
        return f"queue {self.queue}: {self.text}"


class WaitCode(enum.Enum):
    """The reason why a group or a pod waits."""

    UNKNOWN_QUEUE = "UnknownQueue"
    BROKEN_QUEUE = "BrokenQueue"
    """The queue's own object, or one above it, is invalid."""
    NOT_A_LEAF = "NotALeaf"
    CLOSED = "QueueClosed"
    BAD_GROUP = "BadPodGroup"
    """The group's own object is invalid."""
    QUOTA = "QuotaExceeded"
    SHARE = "OverShare"
    """The queue has what it deserves, and others wait for theirs."""
    NOT_ENOUGH_PODS = "NotEnoughTasks"
    NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
    NO_NODE = "NotEnoughResources"
    EARLIER_GROUP = "WaitsForEarlierGroup"
    FOREIGN_GATE = "ForeignGate"


@dataclass(frozen=True, slots=True)
class QueueReason:
    """Why a group or a pod waits: for what, in which queue, for which resources."""

    code: WaitCode
    queue: str
    text: str
    resources: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text
