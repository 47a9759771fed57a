"""Pausing the garbage collector while a cluster is read and taken in, and slowing it afterwards.

Reading makes millions of objects, which stay, and no cycles; the collector would look through them
again and again, for a third of the time, and find nothing. Afterwards they are of the oldest
generation at once, so that it looks through them once in a while, and not three times over.

Whoever keeps a cluster in memory makes few cycles, and much that lives for a moment: `RARELY` is
how often to look for garbage then.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_frozen: list[bool] = []
"""Not empty while something is frozen. The collector would count all of it to tell."""
RARELY = (100_000, 20, 50)
"""Thresholds of the garbage collector for a process that holds a cluster."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Look for garbage rarely for as long as this lasts."""
    usual = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Collect nothing for as long as this lasts, and take all that is there then for old."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not _frozen:  # what is frozen for good stays so
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def freeze() -> None:
    """Leave all that is there now out of collections for good."""
    gc.freeze()
    _frozen[:] = [True]


def unfreeze() -> None:
    """Take what was frozen into collections again."""
    gc.unfreeze()
    _frozen.clear()
