"""All that one loop decides on, put together before it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True)
class Upcoming:
    """Nodes of one group that are on their way."""

    instances: int = 0
    """Those that are ordered, and no node yet."""
    nodes: tuple[str, ...] = ()
    """Those that are registered, and neither ready nor late."""

    def __len__(self) -> int:
        return self.instances + len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A cluster and its cloud at one moment; decisions may fork the snapshot, and undo it."""

    snapshot: Snapshot
    now: datetime
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    """By name."""
    group_of: Mapping[str, str] = field(default_factory=dict)
    """By node, the name of its group; a node that is in none is not here."""
    waiting: tuple[Pod, ...] = ()
    """The pods that count."""
    upcoming: Mapping[str, Upcoming] = field(default_factory=dict)
    """By group; one with nothing on its way is not here."""
    unready: frozenset[str] = frozenset()
    """Nodes that are not ready, and not about to be."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Groups that nothing is bought of now, and why."""
