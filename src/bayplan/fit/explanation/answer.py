"""An explanation as a value: where a pod would go and why, or why nowhere and what would help."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bayplan.fit.explanation.sought import Sought
from bayplan.fit.fixes import Fix
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import UNJUDGED, Refusal


class Standing(Enum):
    """What a pod's situation is, before any node is looked at."""

    WAITING = "waiting"
    """It waits for a node."""
    GATED = "gated"
    """Its scheduling gates keep it from being looked at."""
    PLACED = "placed"
    """It has a node."""
    ENDED = "ended"
    """It has succeeded or failed, and needs no node any more."""
    TERMINATING = "terminating"
    """It is being deleted and has no node; it will not get one."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What one node says of the pod."""

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
    standing: Standing
    node: str | None
    """Where it would go, or already is; None if nowhere."""
    message: str
    """One line. For a pod that fits nowhere it is kube-scheduler's own, to the letter."""
    why: str = ""
    """Why that node and no other."""
    nodes: tuple[NodeAnswer, ...] = ()
    refused_before: Refusal | None = None
    """Why no node was even looked at, if none was."""
    preemption: Preemption | None = None
    """What preemption would do; only where the pod fits nowhere."""
    fixes: tuple[Fix, ...] = ()
    """The smallest changes after which it fits, best first; each was tried."""
    sought: Sought | None = None
    """How far was looked for them, and what came nearest where there are none."""

    @property
    def unjudged(self) -> bool:
        """Whether it cannot be said: it fits nowhere for certain, and some node might take it."""
        return bool(self.unjudged_reason)

    @property
    def unjudged_reason(self) -> str:
        """Why it cannot be said; empty if it can."""
        refusals = (one.refusal for one in self.nodes if self.node is None)
        unjudged = (one for one in refusals if one is not None and one.code == UNJUDGED)
        return next((", ".join(one.reasons) for one in unjudged), "")

    @property
    def fits(self) -> bool:
        """Whether nothing keeps the pod from running: it has a node, gets one, or needs none."""
        if self.standing is Standing.ENDED:
            return True
        return self.node is not None and self.standing in {Standing.WAITING, Standing.PLACED}
