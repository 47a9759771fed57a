"""Expanders that keep the best node group options: most-pods, least-nodes, least-waste, priority.

Priorities are in a ConfigMap. Its key `priorities` is YAML: by priority, patterns that are searched
in a group's name. The highest priority that has an option wins. A group that no pattern matches, or
only one below zero, is not used, unless that is true of all. If it cannot be read, that is noted
and nothing is filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bayplan.autoscaler.estimate.options import NodeGroupOption
from bayplan.autoscaler.plan import ExpanderNote
from bayplan.base.configfiles import ConfigFileError, parse
from bayplan.base.patterns import Pattern, PatternError, compile_pattern
from bayplan.fit.batches import PodEquivalenceGroup
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU, MEMORY

Key = Callable[[NodeGroupOption], Fraction | float]


def least(candidates: Sequence[NodeGroupOption], key: Key) -> list[NodeGroupOption]:
    """Return the options with the lowest key."""
    keys = [key(one) for one in candidates]
    return [one for one, size in zip(candidates, keys, strict=True) if size == min(keys)]


def pods_of(candidate: NodeGroupOption) -> list[tuple[PodEquivalenceGroup, int]]:
    """Return the equivalence classes that an option would help, with their numbers of pods."""
    found = candidate.option.estimate
    return [(one, count) for one, count in zip(found.groups, found.helped, strict=True) if count]


def most_pods(candidates: Sequence[NodeGroupOption]) -> list[NodeGroupOption]:
    """Return the options that help the most pods."""
    return least(candidates, lambda one: -one.option.estimate.pods)


def least_nodes(candidates: Sequence[NodeGroupOption]) -> list[NodeGroupOption]:
    """Return the options with the fewest nodes."""
    return least(candidates, lambda one: one.nodes)


def least_waste(candidates: Sequence[NodeGroupOption]) -> list[NodeGroupOption]:
    """Return the options with the smallest share of unused cpu and memory."""
    return least(candidates, wasted)


def wasted(one: NodeGroupOption) -> Fraction:
    """Return the sum of the unused shares of cpu and of memory."""
    capacity = one.template.node.status.capacity or one.template.node.status.allocatable
    has = {name: milli_value(capacity.get(name, 0)) * one.nodes for name in (CPU, MEMORY)}
    requested = {
        CPU: _requested(one, CPU),
        MEMORY: 1000 * _requested(one, MEMORY),
    }
    return sum((_part(has[name] - requested[name], has[name]) for name in has), Fraction())


def _part(left: int, has: int) -> Fraction:
    """Return the unused share; 1 if there is nothing."""
    return Fraction(left, has) if has else Fraction(1)


def _requested(one: NodeGroupOption, resource: str) -> int:
    return sum(group.signature.requests.get(resource, 0) * count for group, count in pods_of(one))


CONFIG_MAP = "cluster-autoscaler-priority-expander"
KEY = "priorities"
MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Priorities:
    """The priorities in the ConfigMap."""

    by_priority: tuple[tuple[int, tuple[Pattern, ...]], ...]
    """The highest first."""

    def of(self, group: str) -> int | None:
        """Return the highest priority of a group; None if no pattern matches it."""
        for priority, patterns in self.by_priority:
            if any(pattern.search(group) for pattern in patterns):
                return priority
        return None


class PrioritiesError(ValueError):
    """The ConfigMap's priorities are invalid."""


def read_priorities(text: str) -> Priorities:
    """Parse the ConfigMap's priorities."""
    if not text.strip():
        raise PrioritiesError("it is empty")
    try:
        written = parse(text.encode(), KEY, dict[str, list[str]]).value
    except ConfigFileError as error:
        raise PrioritiesError(str(error)) from None
    found = [(_number(key), tuple(map(_pattern, patterns))) for key, patterns in written.items()]
    return Priorities(tuple(sorted(found, key=lambda one: -one[0])))


def prioritised(
    candidates: Sequence[NodeGroupOption], text: str | None
) -> tuple[list[NodeGroupOption], list[ExpanderNote]]:
    """Return the options of the highest priority by the ConfigMap, and its problems."""
    if text is None or not candidates:
        return list(candidates), []
    try:
        priorities = read_priorities(text)
    except PrioritiesError as error:
        message = f"Wrong configuration for priority expander: {error}. Ignoring update."
        return list(candidates), [ExpanderNote("PriorityConfigMapInvalid", message)]
    by_group = {one.view.id: priorities.of(one.view.id) for one in candidates}
    notes = [_unmatched(group) for group, priority in by_group.items() if priority is None]
    known = [priority for priority in by_group.values() if priority is not None and priority >= 0]
    if not known:
        return list(candidates), [*notes, NONE_MATCHED]
    return [one for one in candidates if by_group[one.view.id] == max(known)], notes


NONE_MATCHED = ExpanderNote(
    "PriorityConfigMapNoGroupMatched",
    "Priority expander: no priorities info found for any of the expansion options. "
    "No options filtered.",
)


def _unmatched(group: str) -> ExpanderNote:
    return ExpanderNote(
        "PriorityConfigMapNotMatchedGroup",
        f"Priority expander: node group {group} not found in priority expander configuration. "
        "The group won't be used.",
    )


def _number(key: str) -> int:
    digits = key.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS):
        raise PrioritiesError(f"{key[:40]!r} is not a priority: it must be a whole number")
    return int(key)


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise PrioritiesError(f"{text[:80]!r} is not a pattern: {error}") from None
