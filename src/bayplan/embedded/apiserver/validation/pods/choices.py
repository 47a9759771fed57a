"""Rules that come again and again in a pod: one of a few words, a name, a number in a range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.causes import not_supported, out_of_range, required
from bayplan.embedded.apiserver.validation.names import NameRule, name_problems

Rule = Callable[[JsonObject, str], list[Cause]]
DISALLOWED = "disallowed by cluster policy"
"""Why nothing is privileged on a server that does not allow it."""
MOST_ID = 2**31 - 1
MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def required_choice(value: JsonValue, at: str, choices: Sequence[str]) -> list[Cause]:
    """One of a few words, which must be said."""
    if value in choices:
        return []
    return [not_supported(at, value, choices)] if value else [required(at)]


def choice(value: JsonValue, at: str, choices: Sequence[str]) -> list[Cause]:
    """One of a few words, or nothing."""
    if value is None or value in choices:
        return []
    return [not_supported(at, value, choices)]


def required_name(text: str | None, at: str, rule: NameRule) -> list[Cause]:
    """A name that must be there, and be well formed."""
    return name_problems(rule, text, at) if text else [required(at)]


def optional_name(text: str | None, at: str, rule: NameRule) -> list[Cause]:
    """A name that may be left out."""
    return name_problems(rule, text, at) if text else []


def id_problems(value: int | None, at: str) -> list[Cause]:
    """A user's or a group's number."""
    if value is None or 0 <= value <= MOST_ID:
        return []
    return [out_of_range(at, value, 0, MOST_ID)]


def needed(*names: str) -> Rule:
    """A rule that some fields must be there."""

    def check(obj: JsonObject, at: str) -> list[Cause]:
        return [required(f"{at}.{name}") for name in names if not obj.get(name)]

    return check


CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def containers_of(spec: JsonObject, at: str) -> Iterator[tuple[JsonObject, str]]:
    """Every container of a pod, and where it stands."""
    for name in CONTAINERS:
        for index, container in enumerate(spec.get(name) or ()):
            yield container, f"{at}.{name}[{index}]"
