"""The platform of the machine we run on: what images are for unless a handler says otherwise."""

import platform as machine
import re
import sys

from bayplan.images.platforms.platform import Platform, normalise


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
