"""Platforms: their canonical form, matching, and the entries of an index that match.

A Windows container shares its kernel's interface with whatever runs it. Under *process isolation*
that is the host itself: builds before 20348 need the very same build; since 20348 the interface is
stable from one long-term release to the next, so a guest may be anything from the previous
long-term release up to the host. Under *Hyper-V isolation* a small virtual machine brings the
guest's own kernel, so any known build that is not newer than the host will do.

Revisions (the fourth number) never decide whether an image runs, only which of several is
preferred; they are numbers, so `.1970` is newer than `.999`.

Registries have the same platform under several names (`x86_64`, `amd64/v1`, `amd64`). `normalise`
returns the one canonical form, so that the rest of the package compares strings.

`PlatformMatcher.rank` returns None if the image does not run on the platform, else a key whose
smaller values are better. It depends only on the two platforms, so a selection by rank does not
depend on the order of an index, except among equals.

Matching entries are sorted by rank, and the first is used. Entries without a platform come last:
only their image config has it, which the puller reads. Attestations describe other entries and are
never run.
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
    """Parse an OSVersion; None if it is not one."""
    parts = text.split(".")
    if not 3 <= len(parts) <= 4 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return WindowsVersion(*map(int, parts))


def runs(host: WindowsVersion, guest: WindowsVersion, isolation: Isolation) -> bool:
    """Return whether an image of the guest's version runs on a host of the given version."""
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
    """The platform of an image, as in an OCI image index."""

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
    """Return the canonical form of a platform."""
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
    """Parse `os[(version)]/architecture[/variant]`."""
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
    """Return the platform of this machine."""
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


class PlatformRank(NamedTuple):
    """How well an image matches; smaller is better."""

    fallback: int  # steps away from the wanted architecture and variant
    missing_features: int  # more of the platform's os.features used is better
    older: tuple[int, int]  # Windows build and revision, newest first


class PlatformMatcher(msgspec.Struct, frozen=True):
    """A wanted platform, and for Windows how its containers are isolated."""

    platform: Platform
    isolation: Isolation = Isolation.PROCESS

    def rank(self, offered: Platform) -> PlatformRank | None:
        """Return how well a platform matches; None if it does not run here."""
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
        return PlatformRank(steps.index(place), missing, older)

    def matches(self, offered: Platform) -> bool:
        """Return whether an image of this platform runs here."""
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
    """Return the architectures and variants that a processor runs, its own first."""
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


class PlatformEntry(Protocol):
    """The fields of an index's entry that matching reads."""

    @property
    def platform(self) -> Platform | None:
        """The platform of the entry, if it has one."""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations; attestations are marked here."""


_Entry = TypeVar("_Entry", bound=PlatformEntry)


class PlatformMatches(NamedTuple, Generic[_Entry]):
    """The entries of an index, by how they match."""

    matching: list[_Entry]  # best first
    undeclared: list[_Entry]  # in the index's order, to be judged by their config
    offered: list[Platform]  # everything on offer, for the error message


def is_attestation(entry: PlatformEntry) -> bool:
    """Return whether an entry describes another one instead of being an image."""
    if entry.annotations.get(ATTESTATION_ANNOTATION) == "attestation-manifest":
        return True
    platform = entry.platform
    return platform is not None and (platform.os, platform.architecture) == ("unknown", "unknown")


def match_entries(entries: Iterable[_Entry], matcher: PlatformMatcher) -> PlatformMatches[_Entry]:
    """Return an index's entries by how well they match."""
    images = [entry for entry in entries if not is_attestation(entry)]
    ranked: list[tuple[PlatformRank, int]] = []
    for position, entry in enumerate(images):
        rank = None if entry.platform is None else matcher.rank(entry.platform)
        if rank is not None:
            ranked.append((rank, position))
    return PlatformMatches(
        [images[position] for _, position in sorted(ranked)],
        [entry for entry in images if entry.platform is None],
        [entry.platform for entry in images if entry.platform is not None],
    )


def describe_platforms(offered: Sequence[Platform]) -> str:
    """Return a list of platforms for an error message, without repetition and shortened."""
    names = list(dict.fromkeys(str(platform)[:_DESCRIBED_LETTERS] for platform in offered))
    more = len(names) - _DESCRIBED
    rest = [f"and {more} more"] if more > 0 else []
    return ", ".join(names[:_DESCRIBED] + rest) or "none"
