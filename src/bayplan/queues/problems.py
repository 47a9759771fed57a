"""What is wrong with a queue or a group, and why there is no room: values, never exceptions."""

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


class Why(enum.Enum):
    """What keeps a group or a pod waiting."""

    UNKNOWN_QUEUE = "UnknownQueue"
    BROKEN_QUEUE = "BrokenQueue"
    """The queue's own object, or one above it, cannot be reckoned with."""
    NOT_A_LEAF = "NotALeaf"
    CLOSED = "QueueClosed"
    BAD_GROUP = "BadPodGroup"
    """The group's own object cannot be reckoned with."""
    QUOTA = "QuotaExceeded"
    SHARE = "OverShare"
    """The queue has what it deserves, and others wait for theirs."""
    NOT_ENOUGH_PODS = "NotEnoughTasks"
    NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
    NO_NODE = "NotEnoughResources"
    EARLIER_GROUP = "WaitsForEarlierGroup"
    FOREIGN_GATE = "ForeignGate"


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Why a group or a pod has to wait: what it waits for, in which queue, for which resources."""

    why: Why
    queue: str
    text: str
    resources: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text
