"""Validation of a CronJob's schedule and time zone, with the messages of Go's cron parser."""

from __future__ import annotations

import re
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bayplan.base.durations import DurationError, parse_duration
from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.validation.causes import bad_value, quoted, required

_FIELD = "spec.schedule"
_NAMED = frozenset(
    ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
)
_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")
_MAX_DIGITS = 18
_EVERYWHERE = "Etc/UTC"


class _Unit(NamedTuple):
    least: int
    most: int
    names: tuple[str, ...] = ()


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_UNITS = (_Unit(0, 59), _Unit(0, 23), _Unit(1, 31), _Unit(1, 12, _MONTHS), _Unit(0, 6, _DAYS))


class _ScheduleError(ValueError):
    """Why a string is no schedule."""


def schedule_problems(schedule: str, before: str, zone: str | None) -> list[FieldCause]:
    """Return the problems of a schedule; an existing `TZ=` prefix is accepted."""
    if not schedule:
        return [required(_FIELD)]
    found = []
    try:
        _check(schedule)
    except _ScheduleError as error:
        found.append(bad_value(_FIELD, schedule, str(error)))
    if "TZ" not in schedule:
        return found
    if "TZ" not in before:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(bad_value(_FIELD, schedule, detail))
    elif zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.append(bad_value(_FIELD, schedule, detail))
    return found


def _check(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, _, schedule = schedule.partition("=")[2].partition(" ")
        if detail := _unknown_zone(zone):
            raise _ScheduleError(f"provided bad location {zone}: {detail}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _check_descriptor(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_UNITS):
        listed = f"[{' '.join(fields)}]"
        raise _ScheduleError(
            f"expected exactly {len(_UNITS)} fields, found {len(fields)}: {listed}"
        )
    for field, unit in zip(fields, _UNITS, strict=True):
        for part in filter(None, field.split(",")):
            _check_range(part, unit)


def _check_descriptor(text: str) -> None:
    if text in _NAMED:
        return
    if not text.startswith("@every "):
        raise _ScheduleError(f"unrecognized descriptor: {text}")
    duration = text.removeprefix("@every ")
    try:
        parse_duration(duration)
    except DurationError as error:
        detail = f"time: invalid duration {quoted(duration)}"
        raise _ScheduleError(f"failed to parse duration {text}: {detail}") from error


def _check_range(text: str, unit: _Unit) -> None:
    """Check one of `*`, `3`, `3-7`, `*/5`, `3/5`, `3-7/2`."""
    bounds, *steps = text.split("/")
    low, *highs = bounds.split("-")
    if low in {"*", "?"}:
        start, end = unit.least, unit.most
    else:
        start = _number_or_name(low, unit)
        if len(highs) > 1:
            raise _ScheduleError(f"too many hyphens: {text}")
        end = _number_or_name(highs[0], unit) if highs else start
    if len(steps) > 1:
        raise _ScheduleError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if steps and not highs:
        end = unit.most
    _check_bounds(text, unit, start, end, step)


def _check_bounds(text: str, unit: _Unit, start: int, end: int, step: int) -> None:
    if start < unit.least:
        detail = f"beginning of range ({start}) below minimum ({unit.least})"
    elif end > unit.most:
        detail = f"end of range ({end}) above maximum ({unit.most})"
    elif start > end:
        detail = f"beginning of range ({start}) beyond end of range ({end})"
    elif step == 0:
        detail = "step of range should be a positive number"
    else:
        return
    raise _ScheduleError(f"{detail}: {text}")


def _number_or_name(text: str, unit: _Unit) -> int:
    name = text.lower()
    return unit.names.index(name) + unit.least if name in unit.names else _number(text)


def _number(text: str) -> int:
    if not re.fullmatch("[+-]?[0-9]+", text):
        detail = f"strconv.Atoi: parsing {quoted(text)}: invalid syntax"
        raise _ScheduleError(f"failed to parse int from {text}: {detail}")
    if len(text) > _MAX_DIGITS:
        detail = f"strconv.Atoi: parsing {quoted(text)}: value out of range"
        raise _ScheduleError(f"failed to parse int from {text}: {detail}")
    if int(text) < 0:
        raise _ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def time_zone_problems(zone: str | None) -> list[FieldCause]:
    """Return the problems of a time zone."""
    if zone is None:
        return []
    if not zone:
        return [bad_value("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in {".", ".."} or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [bad_value("spec.timeZone", zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        return [bad_value("spec.timeZone", zone, detail)]
    detail = _unknown_zone(zone)
    return [bad_value("spec.timeZone", zone, detail)] if detail else []


def _unknown_zone(zone: str) -> str:
    return "" if zone in {"", "UTC", "Local"} or _knows(zone) else f"unknown time zone {zone}"


def _knows(zone: str) -> bool:
    """Return whether this machine has the time zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return zone != _EVERYWHERE and not _knows(_EVERYWHERE)
    return True
