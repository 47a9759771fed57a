"""Common rules: enumerations, names, numbers in a range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.causes import not_supported, out_of_range, required
from bayplan.embedded.apiserver.validation.names import NameRule, name_problems

Rule = Callable[[JsonObject, str], list[FieldCause]]
DISALLOWED = "disallowed by cluster policy"
"""The message where privileged containers are not allowed."""
MAX_ID = 2**31 - 1
MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def required_choice(value: JsonValue, at: str, choices: Sequence[str]) -> list[FieldCause]:
    """Require one of the supported values."""
    if value in choices:
        return []
    return [not_supported(at, value, choices)] if value else [required(at)]


def choice(value: JsonValue, at: str, choices: Sequence[str]) -> list[FieldCause]:
    """Accept one of the supported values, or none."""
    if value is None or value in choices:
        return []
    return [not_supported(at, value, choices)]


def required_name(text: str | None, at: str, rule: NameRule) -> list[FieldCause]:
    """Require a valid name."""
    return name_problems(rule, text, at) if text else [required(at)]


def optional_name(text: str | None, at: str, rule: NameRule) -> list[FieldCause]:
    """Accept a valid name, or none."""
    return name_problems(rule, text, at) if text else []


def id_problems(value: int | None, at: str) -> list[FieldCause]:
    """Return the problems of a user or group ID."""
    if value is None or 0 <= value <= MAX_ID:
        return []
    return [out_of_range(at, value, 0, MAX_ID)]


def needed(*names: str) -> Rule:
    """Return a rule that requires some fields."""

    def check(obj: JsonObject, at: str) -> list[FieldCause]:
        return [required(f"{at}.{name}") for name in names if not obj.get(name)]

    return check


CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def containers_of(spec: JsonObject, at: str) -> Iterator[tuple[JsonObject, str]]:
    """Yield every container of a pod, with its path."""
    for name in CONTAINERS:
        for index, container in enumerate(spec.get(name) or ()):
            yield container, f"{at}.{name}[{index}]"
