"""An explanation as a value: where a pod would go and why, or why nowhere and what would help."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bayplan.fit.decision import UNJUDGED, Refusal
from bayplan.fit.fixes import Fix
from bayplan.fit.preemption import Preemption


@dataclass(frozen=True, slots=True)
class NearestNode:
    """The node that lacks the least, where no fix was found."""

    node: str
    refusals: tuple[Refusal, ...]
    """Everything that refuses the pod there."""
    details: tuple[str, ...] = ()
    """The facts behind that."""


@dataclass(frozen=True, slots=True)
class FixSearchResult:
    """The fixes that were found, and how far the search went."""

    fixes: tuple[Fix, ...] = ()
    nodes: int = 0
    """Nodes that were evaluated."""
    tried: int = 0
    """Nodes of those that were tried: the nearest of each group that lacks the same."""
    kinds: int = 0
    """Kinds of new nodes that were tried."""
    most_steps: int = 0
    """Of how many steps fixes could be."""
    nearest: NearestNode | None = None
    """The node that lacks the least; only where no fix was found."""

    @property
    def summary(self) -> str:
        """What was found and how far the search went, in a sentence or two."""
        if self.fixes:
            return f"{len(self.fixes)} fixes were found."
        text = f"No fix of up to {self.most_steps} steps was found."
        if self.nodes:
            text += (
                f" {self.nodes} nodes were evaluated, the nearest {self.tried} tried,"
                f" and {self.kinds} kinds of new nodes."
            )
        if self.nearest is None:
            return text
        reasons = "; ".join(", ".join(one.reasons) for one in self.nearest.refusals)
        facts = f" ({'; '.join(self.nearest.details)})" if self.nearest.details else ""
        return f"{text} Nearest is {self.nearest.node}: {reasons}{facts}."


class PodState(Enum):
    """A pod's state before any node is evaluated."""

    WAITING = "waiting"
    """It is pending."""
    GATED = "gated"
    """Its scheduling gates keep it from being scheduled."""
    PLACED = "placed"
    """It has a node."""
    ENDED = "ended"
    """It has succeeded or failed, and needs no node any more."""
    TERMINATING = "terminating"
    """It is being deleted and has no node; it will not be scheduled."""


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """The verdict of one node on the pod."""

    name: str
    refusal: Refusal | None = None
    """Why it does not fit here; None if it does."""
    details: tuple[str, ...] = ()
    """The facts behind the refusal."""
    scores: dict[str, int] = field(default_factory=dict)
    """Weighted points by plugin, with their sum under `total`; empty if it does not fit."""

    @property
    def fits(self) -> bool:
        """Whether the pod fits here."""
        return self.refusal is None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a pod goes where it goes, or goes nowhere."""

    pod: str
    state: PodState
    node: str | None
    """Where it would go, or already is; None if nowhere."""
    message: str
    """One line. For a pod that fits nowhere it is kube-scheduler's own, to the letter."""
    choice_reason: str = ""
    """Why that node and no other."""
    nodes: tuple[NodeVerdict, ...] = ()
    refused_before: Refusal | None = None
    """The refusal before any node was evaluated, if there was one."""
    preemption: Preemption | None = None
    """What preemption would do; only where the pod fits nowhere."""
    fixes: tuple[Fix, ...] = ()
    """The smallest changes after which it fits, best first; each was tried."""
    search: FixSearchResult | None = None
    """How far they were searched for, and which node lacks the least where there are none."""

    @property
    def unjudged(self) -> bool:
        """Whether this is unknown: no node certainly fits, and some node might."""
        return bool(self.unjudged_reason)

    @property
    def unjudged_reason(self) -> str:
        """Why this is unknown; empty if it is known."""
        refusals = (one.refusal for one in self.nodes if self.node is None)
        unjudged = (one for one in refusals if one is not None and one.code == UNJUDGED)
        return next((", ".join(one.reasons) for one in unjudged), "")

    @property
    def fits(self) -> bool:
        """Whether nothing keeps the pod from running: it has a node, gets one, or needs none."""
        if self.state is PodState.ENDED:
            return True
        return self.node is not None and self.state in {PodState.WAITING, PodState.PLACED}
