"""Times of objects: parsed as RFC 3339, written in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_FORM = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+|,\d+)?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)

_MICROSECONDS = re.compile(r"[.,]\d{6}", re.ASCII)


_PLAIN = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{6})?Z\Z",
    re.ASCII,
)
"""Times that are already in canonical form, on days that every month has."""


def canonical_time(text: str, *, fine: bool) -> str:
    """Return a time as Kubernetes writes it: in seconds, or microseconds if `fine`.

    ValueError if it is invalid.
    """
    plain = _PLAIN.match(text)
    if plain is not None and (plain[4] is not None) is fine:
        return text
    return _rewritten(text, fine=fine)


@lru_cache(1024)
def _rewritten(text: str, *, fine: bool) -> str:
    found = _FORM.match(text)
    if found is None or (fine and not _MICROSECONDS.fullmatch(found[2] or "")):
        raise ValueError(text)
    offset = "+00:00" if found[3] == "Z" else found[3]
    moment = datetime.fromisoformat(found[1] + offset).astimezone(UTC)
    whole = moment.replace(tzinfo=None).isoformat()
    return f"{whole}.{(found[2] or '.')[1:7]:0<6}Z" if fine else f"{whole}Z"


_LAYOUT = (
    ("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"),
    ("15", r"\d\d?"), (":", ":"), ("04", r"\d\d"), (":", ":"),
)  # fmt: skip
_SECONDS = ("05", r"\d\d(?:[.,]\d+)?")
_FINE_SECONDS = (("05", r"\d\d"), (".000000", r"[.,]\d{6}"))
_ZONE = ("Z07:00", r"Z|[+-]\d\d:\d\d")


def problem(text: str, *, fine: bool) -> str:
    """Return the parse error of a time, as Go's time package words it."""
    layout = "2006-01-02T15:04:05.000000Z07:00" if fine else "2006-01-02T15:04:05Z07:00"
    head = f'parsing time "{text}"'
    rest = text
    for wanted, form in (*_LAYOUT, *(_FINE_SECONDS if fine else (_SECONDS,)), _ZONE):
        found = re.match(form, rest, re.ASCII)
        if found is None:
            return f'{head} as "{layout}": cannot parse "{rest}" as "{wanted}"'
        rest = rest[found.end() :]
    return f'{head}: extra text: "{rest}"' if rest else f"{head}: day out of range"
