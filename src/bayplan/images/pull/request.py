"""What a pull is about: an image, for a handler, with a login; and the words for its failures."""

import msgspec

from bayplan.images.handlers import Handler
from bayplan.images.platforms.platform import Platform
from bayplan.images.platforms.selection import describe
from bayplan.images.pull.progress import Listener, ignore
from bayplan.images.registry.client import Source
from bayplan.images.registry.errors import PlatformError


class Pull(msgspec.Struct, frozen=True):
    """One image for one handler."""

    source: Source
    handler: Handler
    listener: Listener = ignore

    @property
    def name(self) -> str:
        """The image and the handler, as errors name them."""
        wanted = self.handler.matcher.platform
        return f"{self.source.reference} for runtime handler {self.handler.name!r} ({wanted})"

    def nothing_fits(self, offered: list[Platform]) -> PlatformError:
        """Say that an image has nothing for the handler, and what it has."""
        matcher = self.handler.matcher
        mode = f" under {matcher.isolation} isolation" if matcher.platform.os == "windows" else ""
        return PlatformError(f"no manifest matches{mode}; on offer: {describe(offered)}")
