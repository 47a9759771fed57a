"""A refusal is a value: how final it is, which plugin said so, and why.

Codes, plugin names and reasons are kube-scheduler's own, so that a person who knows one knows the
other. Helpers below turn many refusals into the one line that kube-scheduler writes into events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Code = Literal["Unschedulable", "UnschedulableAndUnresolvable", "Unjudged"]
UNSCHEDULABLE: Code = "Unschedulable"
"""It does not fit now; removing pods from the node could change that."""
UNRESOLVABLE: Code = "UnschedulableAndUnresolvable"
"""It does not fit, and removing pods from the node would not help."""
UNJUDGED: Code = "Unjudged"
"""Whether it fits hangs on something that is not known here: nobody may take it for a yes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node (or the whole cluster) does not take a pod."""

    code: Code
    plugin: str
    reasons: tuple[str, ...]
    out_of_reach: bool = field(default=False, compare=False)
    """Whether pod and node choose by it whom they have to do with at all."""
    summarised: tuple[str, ...] = field(default=(), compare=False)
    """What a summary says of it, where that is not its reasons."""

    @classmethod
    def unschedulable(cls, plugin: str, reason: str) -> Refusal:
        """A refusal that preemption might lift."""
        return cls(UNSCHEDULABLE, plugin, (reason,))

    @classmethod
    def unresolvable(cls, plugin: str, reason: str) -> Refusal:
        """A refusal that preemption cannot lift."""
        return cls(UNRESOLVABLE, plugin, (reason,))


def summary(node_count: int, reasons: Iterable[str]) -> str:
    """The line that kube-scheduler writes: `0/5 nodes are available: 3 Insufficient cpu, …`."""
    histogram = Counter(reasons)
    parts = sorted(f"{count} {reason}" for reason, count in histogram.items())
    head = f"0/{node_count} nodes are available:"
    return f"{head} {', '.join(parts)}." if parts else head


def summary_before_nodes(node_count: int, refusal: Refusal) -> str:
    """The same line for a pod that was refused before any node was looked at."""
    return f"0/{node_count} nodes are available: {', '.join(refusal.reasons)}."
