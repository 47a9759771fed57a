"""A platform as image indexes write it, and the one spelling of it that we compare.

Registries hold the same platform under several names (`x86_64`, `amd64/v1`, `amd64`). `normalise`
gives each its one spelling, so that the rest of the room compares strings.
"""

import msgspec

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
