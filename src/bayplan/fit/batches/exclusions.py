"""Which groups keep each other off a node, as the plugins say it.

All of these ask only who else is on the same node, so that for two groups there is one answer. A
group that keeps itself off has at most one pod on a node.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.fit.batches.groups import Group
from bayplan.fit.plugins.capacity import OneNode
from bayplan.fit.plugins.registry import CAPACITIES

_EXCLUSIONS = tuple(one.exclusion for one in CAPACITIES if one.exclusion is not None)
_OF_ANY = tuple(one for one in _EXCLUSIONS if one.of_any)


class Exclusions:
    """Who keeps whom off a node, by the number of the group."""

    def __init__(self, groups: Sequence[Group], on: OneNode) -> None:
        self._groups = groups
        self._on = on
        self._excluding = [
            number
            for number, group in enumerate(groups)
            if any(one.may(group, on) for one in _EXCLUSIONS)
        ]

    def by(self, number: int) -> frozenset[int]:
        """The groups that a pod of this group keeps off its node."""
        of_any = any(one.may(self._groups[number], self._on) for one in _OF_ANY)
        others = range(len(self._groups)) if of_any else self._excluding
        return frozenset(other for other in others if self._keeps_off(number, other))

    def _keeps_off(self, there: int, coming: int) -> bool:
        one, other = self._groups[there], self._groups[coming]
        return any(exclusion.keeps_off(one, other, self._on) for exclusion in _EXCLUSIONS)
