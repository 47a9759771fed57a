"""Which Windows images a Windows version runs.

A Windows container shares its kernel's interface with whatever runs it. Under *process isolation*
that is the host itself: builds before 20348 need the very same build; since 20348 the interface is
stable from one long-term release to the next, so a guest may be anything from the previous
long-term release up to the host. Under *Hyper-V isolation* a small virtual machine brings the
guest's own kernel, so any known build that is not newer than the host will do.

Revisions (the fourth number) never decide whether an image runs, only which of several is
preferred; they are numbers, so `.1970` is newer than `.999`.
"""

import enum
from typing import NamedTuple


class Isolation(enum.StrEnum):
    """What separates a Windows container from its host."""

    PROCESS = "process"
    HYPERV = "hyperv"


STABLE_SINCE = 20348
LONG_TERM_BUILDS = (20348, 26100)
KNOWN_BUILDS = frozenset((14393, 17763, 18362, 18363, 19041, 19042, 20348, 25398, 26100))


class WindowsVersion(NamedTuple):
    """`major.minor.build.revision`; compares as numbers."""

    major: int
    minor: int
    build: int
    revision: int = 0


def parse_version(text: str) -> WindowsVersion | None:
    """Read an OSVersion; nothing if it is not one."""
    parts = text.split(".")
    if not 3 <= len(parts) <= 4 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return WindowsVersion(*map(int, parts))


def runs(host: WindowsVersion, guest: WindowsVersion, isolation: Isolation) -> bool:
    """Say whether an image of the guest's version runs on a host of the given version."""
    if host[:2] != guest[:2] or guest.build > host.build:
        return False
    if guest.build == host.build:
        return True
    if isolation is Isolation.HYPERV:
        return guest.build in KNOWN_BUILDS
    return host.build >= STABLE_SINCE and guest.build >= _previous_long_term(host.build)


def _previous_long_term(build: int) -> int:
    return max((known for known in LONG_TERM_BUILDS if known < build), default=STABLE_SINCE)
