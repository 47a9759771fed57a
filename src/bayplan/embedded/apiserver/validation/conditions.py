"""Validation of metav1.Condition lists."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    not_supported,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import name_problems, qualified_name, unmatched

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_NEGATIVE = "must be greater than or equal to zero"
_REASON_LENGTH = 1024
_MESSAGE_LENGTH = 32 * 1024


def condition_problems(conditions: Iterable[JsonObject], field: str) -> list[FieldCause]:
    """Return the problems of conditions, of which each type may occur once."""
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        place, type_ = f"{field}[{index}]", condition.get("type") or ""
        if type_ in seen:
            found.append(duplicate(f"{place}.type", type_))
        seen.add(type_)
        found += _problems(condition, type_, place)
    return found


def _problems(condition: JsonObject, type_: str, place: str) -> list[FieldCause]:
    found = name_problems(qualified_name, type_, f"{place}.type")
    if condition.get("status") not in _STATUSES:
        status = condition.get("status") or ""
        found.append(not_supported(f"{place}.status", status, _STATUSES))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        found.append(bad_value(f"{place}.observedGeneration", generation, _NEGATIVE))
    if not condition.get("lastTransitionTime"):
        found.append(required(f"{place}.lastTransitionTime"))
    found += _reason_problems(condition.get("reason") or "", f"{place}.reason")
    if len((condition.get("message") or "").encode()) > _MESSAGE_LENGTH:
        found.append(too_long(f"{place}.message", _MESSAGE_LENGTH))
    return found


def _reason_problems(reason: str, place: str) -> list[FieldCause]:
    if not reason:
        return [required(place)]
    found = []
    if not re.fullmatch(_REASON, reason):
        detail = (
            "a condition reason must start with alphabetic character, optionally followed by a "
        )
        detail += "string of alphanumeric characters or '_,:', and must end with an alphanumeric "
        detail += "character or '_'"
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        found.append(bad_value(place, reason, unmatched(detail, _REASON, *examples)))
    if len(reason.encode()) > _REASON_LENGTH:
        found.append(too_long(place, _REASON_LENGTH))
    return found
