"""How cells are written: ages, counts, lists and images."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue

NONE = "<none>"


def parse_time(text: JsonValue) -> datetime | None:
    """A timestamp, if it is one."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def age(since: JsonValue, now: datetime) -> str:
    """How long ago, as kubectl says it: 5s, 3m20s, 4h, 12d."""
    moment = parse_time(since)
    if moment is None:
        return "<unknown>"
    seconds = int((now - moment).total_seconds())
    return duration(seconds) if seconds >= 0 else "0s"


def duration(seconds: int) -> str:
    """A duration in at most two units, the coarser the longer it is."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    steps = (
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, _pair(minutes, "m", seconds % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _pair(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (hours < 192, _pair(days, "d", hours % 24, "h")),
        (days < 730, f"{days}d"),
        (days < 2920, _pair(days // 365, "y", days % 365, "d")),
    )
    return next((text for fits, text in steps if fits), f"{days // 365}y")


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def joined(values: Iterable[JsonValue]) -> str:
    """Values with commas between them."""
    return ",".join(str(value) for value in values) or NONE


def labels(selector: JsonObject | None) -> str:
    """A selector or a set of labels as `a=b,c=d`."""
    selector = selector or {}
    pairs = selector.get("matchLabels", {} if "matchExpressions" in selector else selector) or {}
    return joined(f"{key}={value}" for key, value in pairs.items())


def template_images(obj: JsonObject) -> tuple[str, str]:
    """The names and the images of a workload's containers."""
    pod = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    containers = pod.get("containers") or []
    return (
        joined(one.get("name", "") for one in containers),
        joined(one.get("image", "") for one in containers),
    )
