"""The priority expander: which groups come first is written in a ConfigMap.

The map's key `priorities` is YAML: by priority, patterns that a group's name must match somewhere.
The highest priority of which there is a candidate wins. A group that no pattern matches, or only
one below zero, is not used, unless that is true of all. What cannot be read is told, and then
nothing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bayplan.autoscaler.candidates import Candidate
from bayplan.autoscaler.plan import Note
from bayplan.base.configfiles import ConfigFileError, parse
from bayplan.base.patterns import Pattern, PatternError, compile_pattern

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
    candidates: Sequence[Candidate], text: str | None
) -> tuple[list[Candidate], list[Note]]:
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
