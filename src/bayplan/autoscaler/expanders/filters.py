"""Expanders that keep the best node group options: most-pods, least-nodes, least-waste, priority.

Priorities are written in a ConfigMap. Its key `priorities` is YAML: by priority, patterns that a
group's name must match somewhere. The highest priority of which there is a candidate wins. A group
that no pattern matches, or only one below zero, is not used, unless that is true of all. What
cannot be read is told, and then nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bayplan.autoscaler.estimate.options import NodeGroupOption
from bayplan.autoscaler.plan import Note
from bayplan.base.configfiles import ConfigFileError, parse
from bayplan.base.patterns import Pattern, PatternError, compile_pattern
from bayplan.fit.batches import Group
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU, MEMORY

Key = Callable[[NodeGroupOption], Fraction | float]


def least(candidates: Sequence[NodeGroupOption], key: Key) -> list[NodeGroupOption]:
    """The candidates of which something is least."""
    keys = [key(one) for one in candidates]
    return [one for one, size in zip(candidates, keys, strict=True) if size == min(keys)]


def pods_of(candidate: NodeGroupOption) -> list[tuple[Group, int]]:
    """The groups that a candidate's new nodes would help, and how many pods of each."""
    found = candidate.option.estimate
    return [(one, count) for one, count in zip(found.groups, found.helped, strict=True) if count]


def most_pods(candidates: Sequence[NodeGroupOption]) -> list[NodeGroupOption]:
    """Those that help the most pods."""
    return least(candidates, lambda one: -one.option.estimate.pods)


def least_nodes(candidates: Sequence[NodeGroupOption]) -> list[NodeGroupOption]:
    """Those that take the fewest nodes."""
    return least(candidates, lambda one: one.nodes)


def least_waste(candidates: Sequence[NodeGroupOption]) -> list[NodeGroupOption]:
    """Those of whose cpu and memory the smallest part is left unused, both counting alike."""
    return least(candidates, wasted)


def wasted(one: NodeGroupOption) -> Fraction:
    """The part of all cpu that pods leave unused, and that of all memory, added."""
    capacity = one.template.node.status.capacity or one.template.node.status.allocatable
    has = {name: milli_value(capacity.get(name, 0)) * one.nodes for name in (CPU, MEMORY)}
    asked = {
        CPU: _requested(one, CPU),
        MEMORY: 1000 * _requested(one, MEMORY),
    }
    return sum((_part(has[name] - asked[name], has[name]) for name in has), Fraction())


def _part(left: int, has: int) -> Fraction:
    """What is left of what there is; all, if there is nothing."""
    return Fraction(left, has) if has else Fraction(1)


def _requested(one: NodeGroupOption, resource: str) -> int:
    return sum(group.signature.requests.get(resource, 0) * count for group, count in pods_of(one))


CONFIG_MAP = "cluster-autoscaler-priority-expander"
KEY = "priorities"
MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Priorities:
    """What the ConfigMap says."""

    by_priority: tuple[tuple[int, tuple[Pattern, ...]], ...]
    """The highest first."""

    def of(self, group: str) -> int | None:
        """The highest priority that a group has; None if no pattern matches it."""
        for priority, patterns in self.by_priority:
            if any(pattern.search(group) for pattern in patterns):
                return priority
        return None


class PrioritiesError(ValueError):
    """What the ConfigMap says cannot be used."""


def read_priorities(text: str) -> Priorities:
    """The priorities in a ConfigMap's text."""
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
) -> tuple[list[NodeGroupOption], list[Note]]:
    """The candidates of the highest priority by what the ConfigMap says, if there is one, and what
    is wrong with it.
    """
    if text is None or not candidates:
        return list(candidates), []
    try:
        priorities = read_priorities(text)
    except PrioritiesError as error:
        said = f"Wrong configuration for priority expander: {error}. Ignoring update."
        return list(candidates), [Note("PriorityConfigMapInvalid", said)]
    given = {one.view.id: priorities.of(one.view.id) for one in candidates}
    notes = [_unmatched(group) for group, priority in given.items() if priority is None]
    known = [priority for priority in given.values() if priority is not None and priority >= 0]
    if not known:
        return list(candidates), [*notes, NONE_MATCHED]
    return [one for one in candidates if given[one.view.id] == max(known)], notes


NONE_MATCHED = Note(
    "PriorityConfigMapNoGroupMatched",
    "Priority expander: no priorities info found for any of the expansion options. "
    "No options filtered.",
)


def _unmatched(group: str) -> Note:
    return Note(
        "PriorityConfigMapNotMatchedGroup",
        f"Priority expander: node group {group} not found in priority expander configuration. "
        "The group won't be used.",
    )


def _number(key: str) -> int:
    digits = key.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS):
        raise PrioritiesError(f"{key[:40]!r} is no priority, which must be a whole number")
    return int(key)


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise PrioritiesError(f"{text[:80]!r} is no pattern: {error}") from None
