"""What a registry's 401 asks for: reading `WWW-Authenticate`."""

import re
from typing import NamedTuple

_SCHEME = re.compile(r"\s*,?\s*([A-Za-z]+)\s+(?=[A-Za-z_]+\s*=)")
_PARAMETER = re.compile(r'\s*,?\s*([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_LENGTH_LIMIT = 8192


class Challenge(NamedTuple):
    """One way of logging in that a registry offers."""

    scheme: str
    parameters: dict[str, str]


def parse_challenges(headers: list[str]) -> list[Challenge]:
    """Read every challenge of a response, in order."""
    found: list[Challenge] = []
    for header in headers:
        found += _parse_one(header[:_LENGTH_LIMIT])
    return found


def _parse_one(header: str) -> list[Challenge]:
    found: list[Challenge] = []
    position = 0
    if header.strip().lower() in {"basic", "bearer"}:
        return [Challenge(header.strip().lower(), {})]
    while scheme := _SCHEME.match(header, position):
        parameters: dict[str, str] = {}
        position = scheme.end()
        while parameter := _PARAMETER.match(header, position):
            # The next scheme's name is followed by a blank, never by "=".
            quoted, bare = parameter[2], parameter[3]
            text = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters[parameter[1].lower()] = text
            position = parameter.end()
        found.append(Challenge(scheme[1].lower(), parameters))
    return found
