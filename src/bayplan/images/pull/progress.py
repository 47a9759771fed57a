"""How far a pull has come, for whoever wants to draw it."""

import enum
from collections.abc import Callable

import msgspec


class Phase(enum.StrEnum):
    """What is happening to a piece of content."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"
    DONE = "done"


class PullProgress(msgspec.Struct, frozen=True):
    """One step of one layer or config."""

    digest: str
    phase: Phase
    done: int = 0
    total: int = 0


Listener = Callable[[PullProgress], None]


def ignore(_progress: PullProgress) -> None:
    """Draw nothing."""
