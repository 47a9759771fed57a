"""Which images a plugin is asked about: patterns of `host[:port][/path]`, as the kubelet has them.

A pattern has as many labels in its host as the image, each matched by itself (`*`, `?` and classes
of characters stand within a label), the same port or none, and a path that the image's begins with.
"""

from __future__ import annotations

import fnmatch
import re
from typing import NamedTuple

_PORT = re.compile(r":([0-9]*)$")
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f<>\"\\^`{|}%@?#]")


class Place(NamedTuple):
    """A host in its labels, a port if there is one, and a path with its slash."""

    labels: tuple[str, ...]
    port: str
    path: str


def place_of(text: str) -> Place:
    """Split a pattern, or an image's name without its tag."""
    host, slash, path = text.partition("/")
    port = _PORT.search(host)
    name = host[: port.start()] if port else host
    return Place(tuple(name.strip("[]").split(".")), port[1] if port else "", slash + path)


def matches(pattern: str, image: str) -> bool:
    """Say whether a pattern covers an image."""
    wanted, found = place_of(pattern), place_of(image)
    return (
        wanted.port == found.port
        and len(wanted.labels) == len(found.labels)
        and found.path.startswith(wanted.path)
        and all(map(_label_fits, found.labels, wanted.labels))
    )


def _label_fits(label: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(label, pattern.replace("[^", "[!"))


def check_pattern(pattern: str) -> str:
    """Say what is wrong with a pattern; nothing if it is one."""
    if not pattern or pattern.startswith("/"):
        return f"{pattern!r} names no registry"
    if "://" in pattern:
        return f"{pattern!r}: a pattern has no scheme"
    host = pattern.partition("/")[0]
    bare = host if host.startswith("[") else _PORT.sub("", host)
    if _UNFIT.search(pattern) or (":" in bare and not host.startswith("[")):
        return f"{pattern!r} is not of the form host[:port][/path]"
    return ""
