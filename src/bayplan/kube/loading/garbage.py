"""Pausing the garbage collector while a cluster is read and taken in.

That makes millions of objects, which stay, and no cycles; the collector would look through them
again and again, for a third of the time, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Collect nothing for as long as this lasts."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
