"""What is decided of a pod: a node and the volumes it rests on, or a refusal and its reasons.

A decision is a value and changes nothing. Assuming it gives a token; the token takes exactly that
back. A refusal is a value too: how final it is, which plugin refused, and why. Codes, plugin names
and reasons are kube-scheduler's own, and so is the one line that many refusals are summed up in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

Code = Literal["Unschedulable", "UnschedulableAndUnresolvable", "Unjudged"]
UNSCHEDULABLE: Code = "Unschedulable"
"""It does not fit now; removing pods from the node could change that."""
UNRESOLVABLE: Code = "UnschedulableAndUnresolvable"
"""It does not fit, and removing pods from the node would not help."""
UNJUDGED: Code = "Unjudged"
"""Whether it fits depends on something unknown here: it must not be taken for a yes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node (or the whole cluster) does not take a pod."""

    code: Code
    plugin: str
    reasons: tuple[str, ...]
    out_of_reach: bool = field(default=False, compare=False)
    """Whether pod and node choose by it whom they have to do with at all."""
    summarised: tuple[str, ...] = field(default=(), compare=False)
    """Its words in a summary, where those are not its reasons."""

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
    """Return the line for a pod that was refused before any node was evaluated."""
    return f"0/{node_count} nodes are available: {', '.join(refusal.reasons)}."


class ClaimBinding(msgspec.Struct, frozen=True, gc=False):
    """What an unbound claim gets where its pod goes."""

    claim: str
    """The claim, as `namespace/name`."""
    volume: str = ""
    """The volume that it takes; empty if one is to be provisioned for the node."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Where a pod would go: a node, or nowhere."""

    node: str | None
    bindings: tuple[ClaimBinding, ...] = ()
    """What its claims that wait for their first consumer get there."""
    refused_before: Refusal | None = None
    """The refusal before any node was evaluated, if there was one."""
    plugins: frozenset[str] = frozenset()
    """The plugins that refused, if it goes nowhere."""


class Assumption(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The token of one assumed decision; each is equal to itself alone."""

    pod_key: str
    uid: str
    decision: Decision
