"""Node groups as one loop sees them: what the cloud says, and what the cluster has of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.fit.batches import Template
from bayplan.nodegroups import GroupOptions, Instance, NodeGroup


@dataclass(frozen=True, slots=True, eq=False)
class GroupView:
    """One group, at one moment."""

    group: NodeGroup
    target: int
    """How many instances it is meant to have."""
    instances: tuple[Instance, ...] = ()
    options: GroupOptions = field(default_factory=GroupOptions)
    template: Template | None = None
    """What its next node will be, with daemons; None if nobody can say."""
    nodes: tuple[str, ...] = ()
    """The names of its nodes that are registered."""
    price: float | None = None
    """What a node costs an hour; None if nobody can say."""
    problems: tuple[str, ...] = ()
    """What it says of itself that cannot be used."""

    @property
    def id(self) -> str:
        """The group's name."""
        return self.group.id

    @property
    def room(self) -> int:
        """How many more nodes it may have."""
        return max(0, self.group.max_size - self.target)
