"""What a loop decided: values that are carried out, served as JSON, and printed.

Pods are told by their keys, `namespace/name`, and nodes and groups by their names. Whatever was
considered and not done says why, and so does every pod that stays without a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bayplan.fit.plugins.plugin import Cause

Status = Literal["nothing to do", "bought", "removing", "waiting", "unhealthy", "failed"]


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """A group that grows."""

    group: str
    from_size: int
    to_size: int
    max_size: int
    nodes: tuple[tuple[str, ...], ...] = ()
    """For each new node, the pods that it is for."""
    cost: float | None = None
    """What the new nodes cost an hour, together; None if nobody can say."""

    @property
    def count(self) -> int:
        """How many nodes are new."""
        return self.to_size - self.from_size

    def __str__(self) -> str:
        return f"{self.group} {self.from_size}->{self.to_size} (max: {self.max_size})"


@dataclass(frozen=True, slots=True)
class Mixed:
    """How good a mix of several groups is."""

    cost: float
    """What its nodes cost an hour; how many they are, if nobody can say prices."""
    bound: float
    """What any way of helping the same pods with new nodes costs at the least."""
    priced: bool
    """Whether these are prices, and not numbers of nodes."""

    @property
    def gap(self) -> float:
        """How far the cost may be above the least possible, as a part of that."""
        return max(0.0, self.cost - self.bound) / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class Note:
    """Something about how the choice is configured that somebody should be told."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Considered:
    """What one group could have done."""

    group: str
    nodes: int = 0
    """How many new nodes it would take."""
    pods: int = 0
    """How many pods they would help."""
    cost: float | None = None
    refused: str = ""
    """Why it was not chosen; empty if it was."""


@dataclass(frozen=True, slots=True)
class LeftPending:
    """A pod that no node, and nothing that could be bought, has room for."""

    pod: str
    cause: Cause
    driver: str = field(default="", kw_only=True)
    """Where volumes are the cause, whose."""
    by_group: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By group, why a new node of it would not help, or cannot be had."""
    details: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By group, the numbers and names behind that, where there are any."""
    never: bool = False
    """Whether no new node of any group could ever take it."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A node that is given back."""

    node: str
    group: str
    reason: str
    moved: tuple[tuple[str, str], ...] = ()
    """Its pods, each with the node that has room for it."""
    saves: float | None = None
    """What it cost an hour; None if nobody can say."""


@dataclass(frozen=True, slots=True)
class Stays:
    """A node that is not given back, and why: an UnremovableReason, and the pod if one keeps it."""

    node: str
    reason: str
    pod: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one loop saw and decided."""

    time: datetime
    status: Status = "nothing to do"
    message: str = ""
    fits: Mapping[str, str] = field(default_factory=dict)
    """Waiting pods that a node which is there, or on its way, has room for: pod and node."""
    upcoming: Mapping[str, int] = field(default_factory=dict)
    """By group, the nodes that are on their way."""
    scale_ups: tuple[ScaleUp, ...] = ()
    considered: tuple[Considered, ...] = ()
    mixed: Mixed | None = None
    """If groups were mixed, how well."""
    notes: tuple[Note, ...] = ()
    pending: tuple[LeftPending, ...] = ()
    removals: tuple[Removal, ...] = ()
    stays: tuple[Stays, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    """By group, how many nodes are not needed, whether or not they may go yet."""
    set_aside: Mapping[str, int] = field(default_factory=dict)
    """How many waiting pods did not count, by why."""

    @property
    def bought(self) -> int:
        """How many nodes are bought."""
        return sum(one.count for one in self.scale_ups)
