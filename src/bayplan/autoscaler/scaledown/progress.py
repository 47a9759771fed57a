"""Which nodes are on their way out now, as the planner must know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deletions:
    """Nodes that are being given back, each with its group."""

    empty: Mapping[str, str] = field(default_factory=dict)
    drained: Mapping[str, str] = field(default_factory=dict)
    """Those whose pods have to move first."""

    def __contains__(self, node: object) -> bool:
        return node in self.empty or node in self.drained

    def __len__(self) -> int:
        return len(self.empty) + len(self.drained)

    def by_group(self) -> Counter[str]:
        """How many of each group."""
        return Counter([*self.empty.values(), *self.drained.values()])
