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
            if not gc.get_freeze_count():  # what others have frozen stays so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
