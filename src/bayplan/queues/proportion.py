"""What queues deserve by weight: the total poured out in turns, until nobody wants more of it.

In each turn every queue that still wants something is offered its part, by weight, of what is left.
It takes no more than it can really have and no more than is asked of it, but never less than its
guarantee. Who has all that is asked of it, or could not take more, is content and offered no more.
What nobody took is left for the next turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bayplan.queues.quota import total_of
from bayplan.queues.resources import NOTHING, Resources

_MOST_TURNS = 1000
"""Turns end by themselves long before: each makes a queue content, or leaves less than dust."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a queue wants, and between which bounds."""

    weight: int
    request: Resources
    real_capability: Resources
    guarantee: Resources


def deserved_by_weight(claims: Mapping[str, Claim], total: Resources) -> dict[str, Resources]:
    """What each queue deserves of a total."""
    deserved = dict.fromkeys(claims, NOTHING)
    wanting = dict(claims)
    remaining = total
    for _ in range(_MOST_TURNS):
        weights = sum(claim.weight for claim in wanting.values())
        if not weights:
            break
        before = {name: deserved[name] for name in wanting}
        for name, claim in list(wanting.items()):
            deserved[name] = _offered(claim, before[name], remaining, claim.weight / weights)
            if claim.request.fits(deserved[name]) or deserved[name] == before[name]:
                del wanting[name]
        left = _left(remaining, before, deserved)
        if left.is_nothing or left == remaining:
            break
        remaining = left
    return deserved


def _offered(claim: Claim, had: Resources, remaining: Resources, part: float) -> Resources:
    offered = (had + remaining.times(part)).least(claim.real_capability)
    return offered.least(claim.request).most(claim.guarantee)


def _left(
    remaining: Resources, before: Mapping[str, Resources], now: Mapping[str, Resources]
) -> Resources:
    grown = total_of(now[name].beyond(before[name]) for name in before)
    shrunk = total_of(before[name].beyond(now[name]) for name in before)
    return (remaining + shrunk).beyond(grown)
