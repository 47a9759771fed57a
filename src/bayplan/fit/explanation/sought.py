"""What a search for fixes came to: the fixes, and how far it looked."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.fit.fixes import Fix
from bayplan.fit.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Miss:
    """The node that came nearest, where nothing helped."""

    node: str
    refusals: tuple[Refusal, ...]
    """Everything that refuses the pod there."""
    details: tuple[str, ...] = ()
    """The facts behind that."""


@dataclass(frozen=True, slots=True)
class Sought:
    """The fixes that were found, and how far the search went."""

    fixes: tuple[Fix, ...] = ()
    nodes: int = 0
    """Nodes that were looked at."""
    tried: int = 0
    """Nodes of those that were tried: the nearest of each that lack alike."""
    kinds: int = 0
    """Kinds of new nodes that were tried."""
    most_steps: int = 0
    """Of how many steps fixes could be."""
    nearest: Miss | None = None
    """What came nearest; only where no fix was found."""

    @property
    def summary(self) -> str:
        """What was found and how far it was looked, in a sentence or two."""
        if self.fixes:
            return f"{len(self.fixes)} fixes were found."
        said = f"No fix of up to {self.most_steps} steps was found."
        if self.nodes:
            said += (
                f" {self.nodes} nodes were looked at, the nearest {self.tried} tried,"
                f" and {self.kinds} kinds of new nodes."
            )
        if self.nearest is None:
            return said
        reasons = "; ".join(", ".join(one.reasons) for one in self.nearest.refusals)
        facts = f" ({'; '.join(self.nearest.details)})" if self.nearest.details else ""
        return f"{said} Nearest is {self.nearest.node}: {reasons}{facts}."
