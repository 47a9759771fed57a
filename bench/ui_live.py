"""The page of a live cluster as large, from an API server in another process.

    python -m bench.ui_live

From the first question to the cluster to the whole state in a client's hands; how long the event
loop is held until then, and for some seconds after.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from bayplan.base.garbage import RARELY
from bayplan.client import connect
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.kube.codec import encode
from bayplan.ui.live import LiveSource, live_page
from bayplan.ui.server import PageServerOptions, serve
from bench.measure import peak_memory
from bench.ui import Figures, LoopMonitor, objects, state

AFTER = 5.0
"""Seconds for which the loop is watched once the page is there."""
PLURALS = {"Node": ("", "nodes"), "Pod": ("", "pods"), "CSINode": ("storage.k8s.io", "csinodes")}


async def fill(path: Path) -> None:
    """Serve the cluster until the standard input ends."""
    # Without controllers: the owners of these pods do not exist.
    async with ApiServer(ServerConfig(kubeconfig=path, controllers="own")) as server:
        for number, obj in enumerate(objects()):
            group, plural = PLURALS[obj.kind]
            kind = server.plane.catalog.find(group, "v1", plural)
            if kind is None:
                raise RuntimeError(f"the server does not know {plural}")
            data = json.loads(encode(obj))
            data["metadata"] |= {
                "uid": f"uid-{number}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }
            name = ObjectKey(kind.storage, obj.metadata.namespace or "", obj.metadata.name)
            server.store.put(name, data, None)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def measure() -> Figures:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        command = (sys.executable, "-m", "bench.ui_live", str(path))
        pipe = asyncio.subprocess.PIPE
        serving = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        if serving.stdout is None or serving.stdin is None:
            raise RuntimeError("the server has no pipes")
        try:
            await serving.stdout.readline()
            return await _follow(path)
        finally:
            serving.stdin.close()
            await serving.wait()


async def _follow(path: Path) -> Figures:
    found, held = Figures(), LoopMonitor()
    gc.set_threshold(*RARELY)  # as the command does
    start, busy = time.perf_counter(), time.process_time()
    watching = asyncio.create_task(held.watch())
    async with (
        connect(path) as client,
        live_page(client, LiveSource("bench")) as page,
        serve(page, PageServerOptions()) as url,
        aiohttp.ClientSession(url, auto_decompress=False) as session,
    ):
        await state(session)
        found["first/seconds"] = (time.perf_counter() - start, "s")
        found["first/core-seconds"] = (time.process_time() - busy, "s")
        held.take("first", found)
        await asyncio.sleep(AFTER)
        held.take("after", found)
    watching.cancel()
    found["memory"] = (peak_memory(), "MiB")
    return found


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    if sys.argv[1:]:
        asyncio.run(fill(Path(sys.argv[1])))
    else:
        print(json.dumps(asyncio.run(measure())))
