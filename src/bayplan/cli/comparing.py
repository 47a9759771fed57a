"""Comparing what a daemon holds with what the API server has, once or whenever it is asked to."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable

from bayplan.cli.output import printable
from bayplan.client.client import Client
from bayplan.client.errors import ClientError
from bayplan.fit import Profile
from bayplan.observe import Comparison, LiveSnapshot, compare, follow

log = logging.getLogger(__name__)


async def compare_once(client: Client, profile: Profile) -> bool:
    """Fill a snapshot, compare it, print; says whether the two are equal."""
    async with follow(client, profile=profile) as live:
        await live.synced()
        return _told(await compare(live, client))


def compare_on_signal(client: Client, live: Callable[[], LiveSnapshot | None]) -> None:
    """Compare and print on SIGUSR2, one at a time."""
    under_way: set[asyncio.Task[None]] = set()

    def begin() -> None:
        if not under_way:
            under_way.add(task := asyncio.ensure_future(_compare(client, live())))
            task.add_done_callback(under_way.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, begin)


async def _compare(client: Client, live: LiveSnapshot | None) -> None:
    if live is None or not live.is_synced:
        sys.stdout.write("nothing to compare: this replica does not lead, or has only begun\n")
        sys.stdout.flush()
        return
    try:
        _told(await compare(live, client))
    except ClientError as error:
        log.warning("not compared: %s", error)


def _told(found: Comparison) -> bool:
    aside = (f"set aside: {one}" for one in found.set_aside)
    for line in (*map(str, found.differences), *aside):
        sys.stdout.write(f"{printable(line)}\n")
    outcome = "equal" if found.equal else f"{len(found.differences)} differ"
    sys.stdout.write(f"compared {found.looked_at} objects: {outcome}\n")
    sys.stdout.flush()
    return found.equal
