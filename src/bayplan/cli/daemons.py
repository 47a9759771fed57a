"""What the commands that run daemons have in common."""

from __future__ import annotations

import asyncio
import gc
import sys

from bayplan.base.garbage import RARELY, freeze
from bayplan.cli.output import printable


async def settle(ready: asyncio.Event) -> None:
    """Once the cluster is loaded, look for garbage among what comes after it, and seldom."""
    await ready.wait()
    gc.collect()
    freeze()
    gc.set_threshold(*RARELY)


def show(key: str, text: str) -> None:
    """Show what would be done with an object."""
    sys.stdout.write(f"{printable(key)}: {printable(text)}\n")
    sys.stdout.flush()
