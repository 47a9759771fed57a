"""Platforms: how they are written, which suits which, and the manifest of an index for one.

A Windows container shares its kernel's interface with whatever runs it. Under *process isolation*
that is the host itself: builds before 20348 need the very same build; since 20348 the interface is
stable from one long-term release to the next, so a guest may be anything from the previous
long-term release up to the host. Under *Hyper-V isolation* a small virtual machine brings the
guest's own kernel, so any known build that is not newer than the host will do.

Revisions (the fourth number) never decide whether an image runs, only which of several is
preferred; they are numbers, so `.1970` is newer than `.999`.

Registries hold the same platform under several names (`x86_64`, `amd64/v1`, `amd64`). `normalise`
gives each its one spelling, so that the rest of the room compares strings.

`Matcher.rank` answers both at once: nothing if the image does not run there, else a key whose
smaller values are better. It is a function of the two platforms alone, so a choice by rank never
depends on the order of an index, except among equals.

Filter by match, sort stably by rank, take the first. Entries that say no platform come last: only
their image config can tell, and reading that is the puller's work. Attestations describe other
entries and never run anywhere.
"""

import enum
import platform as machine
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec


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


_ARCHITECTURES = {
    "x86_64": "amd64",
    "x86-64": "amd64",
    "aarch64": "arm64",
    "i386": "386",
    "i686": "386",
}
_ARM_FLOATS = {"armhf": "v7", "armel": "v6"}


class Platform(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an image runs on: the OCI image index's `platform`."""

    os: str = ""
    architecture: str = ""
    variant: str = ""
    os_version: str = msgspec.field(default="", name="os.version")
    os_features: tuple[str, ...] = msgspec.field(default=(), name="os.features")

    def __str__(self) -> str:
        version = f"({self.os_version})" if self.os_version else ""
        features = "".join(f"+{feature}" for feature in self.os_features)
        parts = (f"{self.os}{version}{features}", self.architecture, self.variant)
        return "/".join(part for part in parts if part) or "unspecified"


def normalise(platform: Platform) -> Platform:
    """Spell a platform in the one way that comparisons understand."""
    architecture, variant = _normal_architecture(
        platform.architecture.lower(), platform.variant.lower()
    )
    system = platform.os.lower()
    return Platform(
        os="darwin" if system == "macos" else system,
        architecture=architecture,
        variant=variant,
        os_version=platform.os_version,
        os_features=tuple(sorted(set(platform.os_features))),
    )


def _normal_architecture(architecture: str, variant: str) -> tuple[str, str]:
    if architecture in _ARM_FLOATS:
        return "arm", _ARM_FLOATS[architecture]
    architecture = _ARCHITECTURES.get(architecture, architecture)
    variant = f"v{variant}" if variant[:1].isdigit() else variant
    match architecture:
        case "amd64":
            return architecture, "" if variant == "v1" else variant
        case "arm64":
            return architecture, "" if variant in {"v8", "v8.0"} else variant
        case "arm":
            return architecture, variant or "v7"
        case "386":
            return architecture, ""
    return architecture, variant


def parse_platform(text: str) -> Platform:
    """Read `os[(version)]/architecture[/variant]`, as people and configuration files write it."""
    parts = text.strip().split("/")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise ValueError(f"platform {text!r} is not of the form os/architecture[/variant]")
    system, _, rest = parts[0].partition("(")
    if rest and not rest.endswith(")"):
        raise ValueError(f"platform {text!r} has an OS version without its closing bracket")
    return normalise(
        Platform(
            os=system,
            os_version=rest.removesuffix(")"),
            architecture=parts[1],
            variant=parts[2] if len(parts) == 3 else "",
        )
    )


def host_platform() -> Platform:
    """Describe this machine as an image index would."""
    architecture, variant = _processor(machine.machine().lower())
    return normalise(
        Platform(
            os="windows" if sys.platform == "win32" else machine.system(),
            architecture=architecture,
            variant=variant,
            os_version=machine.version() if sys.platform == "win32" else "",
        )
    )


def _processor(name: str) -> tuple[str, str]:
    arm = re.fullmatch(r"armv([5-8]).*", name)
    return ("arm", f"v{arm[1]}") if arm else (name, "")


_UNVERSIONED = (0, 0)


class Rank(NamedTuple):
    """How well an image suits; smaller is better."""

    fallback: int  # steps away from the wanted architecture and variant
    missing_features: int  # more of the platform's os.features used is better
    older: tuple[int, int]  # Windows build and revision, newest first


class Matcher(msgspec.Struct, frozen=True):
    """A wanted platform, and for Windows how its containers are isolated."""

    platform: Platform
    isolation: Isolation = Isolation.PROCESS

    def rank(self, offered: Platform) -> Rank | None:
        """Say how well an offered platform suits; nothing if it does not run here."""
        wanted, image = normalise(self.platform), normalise(offered)
        steps = _fallbacks(wanted.architecture, wanted.variant)
        place = (image.architecture, image.variant)
        if image.os != wanted.os or place not in steps:
            return None
        if not set(image.os_features) <= set(wanted.os_features):
            return None
        older = self._version_rank(wanted, image)
        if older is None:
            return None
        missing = len(wanted.os_features) - len(image.os_features)
        return Rank(steps.index(place), missing, older)

    def matches(self, offered: Platform) -> bool:
        """Say whether an image of this platform runs here."""
        return self.rank(offered) is not None

    def _version_rank(self, wanted: Platform, image: Platform) -> tuple[int, int] | None:
        if wanted.os != "windows" or not image.os_version:
            return _UNVERSIONED
        guest = parse_version(image.os_version)
        if guest is None:
            return None
        if wanted.os_version:
            host = parse_version(wanted.os_version)
            if host is None or not runs(host, guest, self.isolation):
                return None
        return -guest.build, -guest.revision


def _fallbacks(architecture: str, variant: str) -> list[tuple[str, str]]:
    """List what a processor runs, its own kind first."""
    own = (architecture, variant)
    match architecture:
        case "amd64":
            lower = [("amd64", "" if n == 1 else f"v{n}") for n in _below(variant, 1)]
            return [own, *lower, ("386", "")]
        case "arm":
            return [own, *(("arm", f"v{n}") for n in _below(variant, 5))]
        case "arm64":
            plain = [("arm64", "")] if variant else []
            return [own, *plain, *(("arm", f"v{n}") for n in range(8, 4, -1))]
    return [own]


def _below(variant: str, lowest: int) -> range:
    number = variant.removeprefix("v").partition(".")[0]
    return range(int(number) - 1 if number.isdigit() else 0, lowest - 1, -1)


_DESCRIBED = 20
_DESCRIBED_LETTERS = 60
ATTESTATION_ANNOTATION = "vnd.docker.reference.type"


class Offered(Protocol):
    """An index's entry, as far as choosing looks at it."""

    @property
    def platform(self) -> Platform | None:
        """What the entry says it was built for."""

    @property
    def annotations(self) -> dict[str, str]:
        """Remarks; attestations are marked here."""


_Entry = TypeVar("_Entry", bound=Offered)


class Choice(NamedTuple, Generic[_Entry]):
    """What an index has for a matcher."""

    matching: list[_Entry]  # best first
    undeclared: list[_Entry]  # in the index's order, to be judged by their config
    offered: list[Platform]  # everything on offer, for the error message


def is_attestation(entry: Offered) -> bool:
    """Say whether an entry describes another one instead of being an image."""
    if entry.annotations.get(ATTESTATION_ANNOTATION) == "attestation-manifest":
        return True
    platform = entry.platform
    return platform is not None and (platform.os, platform.architecture) == ("unknown", "unknown")


def choose(entries: Iterable[_Entry], matcher: Matcher) -> Choice[_Entry]:
    """Sort an index's entries by how well they suit."""
    images = [entry for entry in entries if not is_attestation(entry)]
    ranked: list[tuple[Rank, int]] = []
    for position, entry in enumerate(images):
        rank = None if entry.platform is None else matcher.rank(entry.platform)
        if rank is not None:
            ranked.append((rank, position))
    return Choice(
        [images[position] for _, position in sorted(ranked)],
        [entry for entry in images if entry.platform is None],
        [entry.platform for entry in images if entry.platform is not None],
    )


def describe(offered: Sequence[Platform]) -> str:
    """List platforms for an error message, each once, and only so many."""
    names = list(dict.fromkeys(str(platform)[:_DESCRIBED_LETTERS] for platform in offered))
    more = len(names) - _DESCRIBED
    rest = [f"and {more} more"] if more > 0 else []
    return ", ".join(names[:_DESCRIBED] + rest) or "none"
