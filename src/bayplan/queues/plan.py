"""What was decided in one cycle: values for whoever writes it to the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bayplan.queues.problems import NoRoom


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod, and the node that was chosen for it."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has to leave, for whom and why."""

    pod: str
    node: str
    preemptor: str
    action: Literal["preempt", "reclaim"]


@dataclass(slots=True)
class Plan:
    """The decisions of one cycle; pods and groups by their keys."""

    admitted: list[str] = field(default_factory=list)
    """Groups that are now Inqueue."""
    ungated: list[str] = field(default_factory=list)
    """Pods that lose the gate of queue admission; they hold their quota from now on."""
    placed: list[Placed] = field(default_factory=list)
    """Pods to be bound; each pod's gang is complete."""
    pipelined: list[Placed] = field(default_factory=list)
    """Pods that a node is kept for until others have left it."""
    evicted: list[Eviction] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)
    """Pods that quota lets run and no node takes: what nodes are to be bought for."""
    waiting: dict[str, NoRoom] = field(default_factory=dict)
    """By group what it waits for."""
