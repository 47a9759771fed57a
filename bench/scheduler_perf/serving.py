"""`python -m bench.scheduler_perf.serving KUBECONFIG [CONFIG]`: a scheduler, until told to stop.

It says `ready` when it has the whole picture.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from bayplan.client import Client, Tuning
from bayplan.client.config import from_kubeconfig
from bayplan.client.daemon import until_signalled
from bayplan.scheduler.config import default_settings, read_settings
from bayplan.scheduler.daemon import SchedulerDaemon

TUNING = Tuning(qps=1e6, burst=10**6, in_flight=256)


def main(arguments: list[str]) -> None:
    """Schedule."""
    kubeconfig, *config = map(Path, arguments)
    settings = read_settings(config[0]) if config else default_settings()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(until_signalled(_lead(SchedulerDaemon(settings), kubeconfig)))


async def _lead(daemon: SchedulerDaemon, kubeconfig: Path) -> None:
    async with Client(from_kubeconfig([kubeconfig]), TUNING) as client:
        telling = asyncio.ensure_future(_tell(daemon))
        try:
            await daemon.lead(client)
        finally:
            telling.cancel()


async def _tell(daemon: SchedulerDaemon) -> None:
    await daemon.ready.wait()
    print("ready", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
