"""The plan of a loop: values that are executed, served as JSON, and printed.

Pods are named by their keys, `namespace/name`, nodes and groups by their names. Every group that
was considered and not chosen, every unschedulable pod and every unremovable node has its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import msgspec

from bayplan.fit.plugins.plugin import Cause

Status = Literal["nothing to do", "scaling up", "removing", "waiting", "unhealthy", "failed"]


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """The scale-up of a group."""

    group: str
    from_size: int
    to_size: int
    max_size: int
    nodes: tuple[tuple[str, ...], ...] = ()
    """For each new node, the pods that it is for."""
    cost: float | None = None
    """The hourly price of the new nodes together; None if unknown."""

    @property
    def count(self) -> int:
        """The number of new nodes."""
        return self.to_size - self.from_size

    def __str__(self) -> str:
        return f"{self.group} {self.from_size}->{self.to_size} (max: {self.max_size})"


@dataclass(frozen=True, slots=True)
class MixResult:
    """The cost of a mix of several groups, and its lower bound."""

    cost: float
    """The hourly price of its nodes; the number of nodes if prices are unknown."""
    bound: float
    """The lower bound of the cost of any scale-up that helps the same pods."""
    priced: bool
    """Whether these are prices, not numbers of nodes."""

    @property
    def gap(self) -> float:
        """How far the cost may be above the minimum, relative to it."""
        return max(0.0, self.cost - self.bound) / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class ExpanderNote:
    """A problem of the expanders' configuration."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ConsideredGroup:
    """A group that was considered for the scale-up."""

    group: str
    nodes: int = 0
    """The number of new nodes in its estimate."""
    pods: int = 0
    """The number of pods that they would help."""
    cost: float | None = None
    refused: str = ""
    """Why it was not chosen; empty if it was."""


@dataclass(frozen=True, slots=True)
class NoScaleUpInfo:
    """A pod that fits no node, and that no scale-up would help."""

    pod: str
    cause: Cause
    driver: str = field(default="", kw_only=True)
    """The CSI driver, if volumes are the cause."""
    by_group: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By group, why a scale-up would not help, or is not possible."""
    details: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By group, details of these reasons."""
    never: bool = False
    """Whether it could never fit a new node of any group."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A node that is removed."""

    node: str
    group: str
    reason: str
    moved: tuple[tuple[str, str], ...] = ()
    """Its pods, each with the node that it fits."""
    saves: float | None = None
    """Its hourly price; None if unknown."""


@dataclass(frozen=True, slots=True)
class UnremovableNodeInfo:
    """An unremovable node: its UnremovableReason, and the blocking pod if there is one."""

    node: str
    reason: str
    pod: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AutoscalerPlan:
    """The decisions of one loop."""

    time: datetime
    status: Status = "nothing to do"
    message: str = ""
    fits: Mapping[str, str] = field(default_factory=dict)
    """Pending pods that fit an existing or upcoming node: pod and node."""
    upcoming: Mapping[str, int] = field(default_factory=dict)
    """By group, the number of upcoming nodes."""
    scale_ups: tuple[ScaleUp, ...] = ()
    considered: tuple[ConsideredGroup, ...] = ()
    mixed: MixResult | None = None
    """The quality of the mix, if groups were mixed."""
    notes: tuple[ExpanderNote, ...] = ()
    pending: tuple[NoScaleUpInfo, ...] = ()
    removals: tuple[Removal, ...] = ()
    unremovable: tuple[UnremovableNodeInfo, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    """By group, the number of unneeded nodes, also those not yet removable."""
    ignored_pods: Mapping[str, int] = field(default_factory=dict)
    """The number of pending pods that were ignored, by reason."""

    @property
    def new_nodes(self) -> int:
        """The number of new nodes."""
        return sum(one.count for one in self.scale_ups)


_OLD_FIELDS = {"unremovable": "stays", "ignored_pods": "set_aside"}
_OLD_STATUSES = {"scaling up": "bought"}
"""The deprecated names of `/plan` by their new names."""


def encode_plans(plans: Iterable[AutoscalerPlan]) -> bytes:
    """Encode plans as JSON, with the deprecated names beside the new ones."""
    documents: list[dict[str, Any]] = msgspec.to_builtins(tuple(plans))
    for one in documents:
        one.update({old: one[new] for new, old in _OLD_FIELDS.items()})
        one["deprecated_status"] = _OLD_STATUSES.get(one["status"], one["status"])
    return msgspec.json.encode(documents)
