"""Whether an image's platform suits a wanted one, and how well.

`Matcher.rank` answers both at once: nothing if the image does not run there, else a key whose
smaller values are better. It is a function of the two platforms alone, so a choice by rank never
depends on the order of an index, except among equals.
"""

from typing import NamedTuple

import msgspec

from bayplan.images.platforms.platform import Platform, normalise
from bayplan.images.platforms.windows import Isolation, parse_version, runs

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
