"""Pause the garbage collector while a cluster is read, and run it rarely afterwards.

Reading creates millions of long-lived objects and no cycles. The collector would scan them again
and again, for a third of the time, and find nothing. Afterwards they are moved to the oldest
generation at once, which is scanned rarely.

A process that keeps a cluster in memory creates few cycles and many short-lived objects: `RARELY`
has the thresholds for it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_frozen: list[bool] = []
"""Not empty while objects are frozen; `gc.get_freeze_count` would walk all of them."""
RARELY = (100_000, 20, 50)
"""Thresholds of the garbage collector for a process that holds a cluster."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Run the collector rarely inside the block."""
    usual = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Collect nothing inside the block; then move all objects to the oldest generation."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not _frozen:  # unfreezing here would undo `freeze`
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def freeze() -> None:
    """Exclude all existing objects from collections until `unfreeze`."""
    gc.freeze()
    _frozen[:] = [True]


def unfreeze() -> None:
    """Include frozen objects in collections again."""
    gc.unfreeze()
    _frozen.clear()
