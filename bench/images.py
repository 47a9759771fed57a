"""Pulling and looking up images, against a real registry on this machine and `skopeo copy`.

    images/pull/50            50 images of 3 layers, all asked for at once: verified, unpacked, kept
    images/skopeo/50          the same 50 by `skopeo copy` to an OCI layout: copied, not unpacked
    images/status/1000        ImageStatus a second with 1,000 images in the store, 16 in flight
    images/list/1000          ListImages a second with 1,000 images, one after another
    images/memory/1GiB        the service's peak memory while it pulls one layer of 1 GiB

Each runs in a process of its own, so that the client's work is not counted as the service's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri.client import CriClient
from bayplan.images.platforms import Platform
from bayplan.images.store.database import ContentMetadata, StoredImage
from bayplan.images.store.store import ImageStore
from bench.measure import Result, line
from tests.images.parts.cri_process import cri_process
from tests.images.parts.layouts import ImageBuilder, tar_of
from tests.images.parts.registry import Registry, missing, running_registry

IMAGES = 50
STORED = 1000
IN_FLIGHT = 16
LISTS = 100
RUNS = 3
GIBIBYTE = 1024**3


def cases() -> Iterator[Result]:
    """Measure everything."""
    if absent := missing():
        print(f"images: not measured without {absent}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="bayplan-bench-") as name:
        scratch = Path(name)
        (scratch / "registry-root").mkdir()
        with running_registry(scratch / "registry-root") as registry:
            names = _push_many(registry)
            yield Result(f"images/pull/{IMAGES}", _best(_pull_all, names, scratch), "images/s")
            yield Result(f"images/skopeo/{IMAGES}", _best(_skopeo_all, names, scratch), "images/s")
            yield from _lookups(scratch)
            yield Result("images/memory/1GiB", _memory(registry, scratch), "MiB")


def _push_many(registry: Registry) -> list[str]:
    chance = random.Random(1)
    names = []
    for number in range(IMAGES):
        builder = ImageBuilder()
        layers = [
            tar_of(*((f"dir-{number}-{part}/file-{n}", chance.randbytes(4096)) for n in range(25)))
            for part in range(3)
        ]
        names.append(registry.push(builder, builder.image(*layers), f"bench:{number}"))
    return names


def _best(work: Callable[[list[str], Path], float], names: list[str], scratch: Path) -> float:
    rates = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            rates.append(len(names) / work(names, Path(directory)))
    return max(rates)


def _pull_all(names: list[str], directory: Path) -> float:
    async def pull() -> float:
        async with cri_process(directory) as running:
            client = running.client
            start = time.perf_counter()
            await asyncio.gather(*(client.pull_image(_pull_request(name)) for name in names))
            return time.perf_counter() - start

    return asyncio.run(pull())


def _skopeo_all(names: list[str], directory: Path) -> float:
    def copy(number: int, name: str) -> None:
        command = ("skopeo", "copy", "--quiet", "--src-tls-verify=false", f"docker://{name}")
        subprocess.run([*command, f"oci:{directory}/{number}:it"], check=True)  # noqa: S603

    start = time.perf_counter()
    # Each skopeo is a process; more of them than processors only get into each other's way.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(copy, range(len(names)), names))
    return time.perf_counter() - start


def _lookups(scratch: Path) -> Iterator[Result]:
    directory = scratch / "lookups"
    directory.mkdir()
    asyncio.run(_fill(directory / "store"))

    async def measure() -> tuple[float, float]:
        async with cri_process(directory) as running:
            client = running.client
            status = max([await _status_rate(client) for _ in range(RUNS)])
            return status, max([await _list_rate(client) for _ in range(RUNS)])

    status, listing = asyncio.run(measure())
    yield Result(f"images/status/{STORED}", status, "calls/s")
    yield Result(f"images/list/{STORED}", listing, "calls/s")


async def _fill(root: Path) -> None:
    store = ImageStore(root)
    with contextlib.closing(store):
        for number in range(STORED):
            digest = f"sha256:{number:064x}"
            names = (f"registry.example/image:{number}", f"registry.example/image@{digest}")
            platform = Platform(os="linux", architecture="amd64")
            await store.catalogue.add(
                StoredImage("runc", digest, digest, 1, "", platform, names, (), ()),
                ContentMetadata(),
            )


async def _status_rate(client: CriClient) -> float:
    async def ask(first: int) -> None:
        for number in range(first, STORED, IN_FLIGHT):
            spec = cri.ImageSpec(image=f"registry.example/image:{number}")
            await client.image_status(cri.ImageStatusRequest(image=spec))

    start = time.perf_counter()
    await asyncio.gather(*map(ask, range(IN_FLIGHT)))
    return STORED / (time.perf_counter() - start)


async def _list_rate(client: CriClient) -> float:
    start = time.perf_counter()
    for _ in range(LISTS):
        await client.list_images(cri.ListImagesRequest())
    return LISTS / (time.perf_counter() - start)


def _memory(registry: Registry, scratch: Path) -> float:
    block = random.Random(2).randbytes(GIBIBYTE // 64)
    builder = ImageBuilder()
    layer = tar_of(*((f"file-{n}", block) for n in range(64)))
    name = registry.push(builder, builder.image(layer), "memory:1")
    del builder, layer
    directory = scratch / "memory"
    directory.mkdir()

    async def pull() -> float:
        async with cri_process(directory) as running:
            await running.client.pull_image(_pull_request(name))
            pid = running.process.pid
            status = await asyncio.to_thread(Path(f"/proc/{pid}/status").read_text)
            peak = next(row for row in status.splitlines() if row.startswith("VmHWM"))
            return int(peak.split()[1]) / 1024

    return asyncio.run(pull())


def _pull_request(name: str) -> cri.PullImageRequest:
    return cri.PullImageRequest(image=cri.ImageSpec(image=name))


if __name__ == "__main__":
    for result in cases():
        print(line(result), flush=True)
