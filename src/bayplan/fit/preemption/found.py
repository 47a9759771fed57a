"""What is found on one node, and which of several such findings is best."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.fit.preemption.importance import IMPORTANCE, Standing

LOWEST_PRIORITY = -(1 << 31)
Cost = tuple[int, int, int, int, float, str]


class Found(NamedTuple):
    """A node, and the pods that would have to leave it, the most important first."""

    node: str
    victims: list[Standing]
    budgets_broken: int

    @classmethod
    def of(cls, node: str, protected: list[Standing], others: list[Standing]) -> Found:
        """What is found where these must go: those that a budget protects, and others."""
        victims = protected + others
        if protected and others:
            victims.sort(key=IMPORTANCE)
        return cls(node, victims, len(protected))


def cost(found: Found) -> Cost:
    """What a candidate costs; the least is best."""
    first = found.victims[0]
    priorities = [one.priority for one in found.victims]
    # Victims of one priority stand in the order in which they started, so the first is the oldest.
    return (
        found.budgets_broken,
        first.priority,
        sum(priorities) - LOWEST_PRIORITY * len(priorities),
        len(priorities),
        -first.importance.start,
        found.node,
    )
