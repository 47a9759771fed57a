"""Killed again and again in the middle of pulls, removals and collection: whole images or none.

With `--long` a hundred rounds are tried instead of a few. Each starts the service, looks at
everything that is on the disk, lets it work, and kills it at a moment of chance.
"""

import asyncio
import contextlib
import json
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bayplan.base.clock import WallClock
from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.image_gc import ImageGCManager, ImageGCPolicy, probe_disk
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageSpec, RuntimeCallError
from tests.images.parts.cri_process import CriProcess, cri_process
from tests.images.parts.layouts import ImageBuilder, linux, tar_of
from tests.images.parts.registry import Registry
from tests.images.parts.service import CONFIG
from tests.images.parts.store_contents import Expected, Found, inspect, occupied

pytestmark = pytest.mark.whole


log = logging.getLogger(__name__)
ROUNDS, MANY_ROUNDS = 5, 100
IMAGES = 5
HANDLERS = {"": "amd64", "kata": "amd64", "arm": "arm64"}
LONGEST = 0.5  # seconds of work before a kill
Key = tuple[str, str]


@dataclass
class Model:
    """What has been acknowledged: which (image, handler) is there, is not, or may be either."""

    registry: Registry
    chance: random.Random
    expected: Expected = field(default_factory=Expected)
    ids: dict[Key, str] = field(default_factory=dict)
    there: dict[Key, bool | None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def push(self, number: int) -> None:
        """Push an index of two platforms that share their base."""
        builder, noise = ImageBuilder(), random.Random(number)
        base = tar_of(*((f"base/{n}", random.Random(n).randbytes(3000)) for n in range(60)))
        entries = {}
        for cpu in ("amd64", "arm64"):
            layers = [base, tar_of((f"big-{number}-{cpu}", noise.randbytes(2_000_000)))]
            layers.append(tar_of((f"top-{number}", cpu.encode()), ("base/0", b"replaced")))
            entries[cpu] = builder.entry(*layers, platform=linux(cpu))
            self.expected.add(builder, layers)
        name = self.registry.push(builder, builder.index(*entries.values()), f"kills:{number}")
        self.expected.blobs.update(builder.blobs)
        for handler, cpu in HANDLERS.items():
            manifest = json.loads(builder.blobs[str(entries[cpu]["digest"])])
            self.ids[name, handler] = manifest["config"]["digest"]
            self.there[name, handler] = False

    def check(self, found: Found) -> None:
        """Hold what is there against what was acknowledged; what may be either is known now."""
        names = {(self.ids[key], key[1] or "runc"): key for key in self.ids}
        present = {names[image] for image in found.images}
        for key, there in self.there.items():
            assert there is None or there == (key in present), (key, there)
            self.there[key] = key in present
        self.counts["partial"] = max(self.counts["partial"], found.partial)
        self.counts["partial_bytes"] = max(self.counts["partial_bytes"], found.partial_bytes)
        self.counts["continuable"] += bool(found.partial)

    def work(self, runtime: CriRuntime) -> list[Coroutine[None, None, None]]:
        """Some of everything: each image pulled or removed, and sometimes all collected."""
        calls = [self._one(runtime, key) for key in self.ids if self.chance.random() < 0.7]
        if self.chance.random() < 0.3:
            calls.append(self._collect(runtime))
        self.chance.shuffle(calls)
        return calls

    async def _one(self, runtime: CriRuntime, key: Key) -> None:
        spec, remove = ImageSpec(*key), self.there[key] and self.chance.random() < 0.6
        self.there[key] = None
        what = "removed" if remove else "pulled"
        try:
            if remove:
                await runtime.remove_image(spec)
            else:
                await runtime.pull_image(spec, None, None)
        except RuntimeCallError:
            self.counts[f"cut off while being {what}"] += 1
            return
        self.counts[what] += 1
        if not self.collecting:
            self.there[key] = not remove

    collecting: bool = False

    async def _collect(self, runtime: CriRuntime) -> None:
        """Collect whatever is unused; meanwhile and after, nothing is known of any image."""
        self.collecting = True
        self.there = dict.fromkeys(self.there)
        collector = ImageGCManager(runtime, WallClock(), ImageGCPolicy(), probe_disk)
        with contextlib.suppress(RuntimeCallError):
            self.counts["collected"] += len((await collector.remove_unused()).removed)


async def one_round(model: Model, running: CriProcess, socket: Path) -> None:
    """Let the service work for a while, and kill it."""
    async with CriRuntime(str(socket), timeout=60) as runtime:
        model.collecting = False
        working = asyncio.gather(*model.work(runtime))
        await asyncio.wait([working], timeout=model.chance.uniform(0, LONGEST))
        await running.kill()
        await working
    model.counts["kills"] += 1


async def look(model: Model, directory: Path, running: CriProcess) -> None:
    found = await asyncio.to_thread(inspect, directory / "store", model.expected)
    model.check(found)
    info = await running.client.image_fs_info()
    usage = info.image_filesystems[0]
    bytes_used, inodes = await asyncio.to_thread(occupied, directory / "store")
    assert (usage.used_bytes.value, usage.inodes_used.value) == (bytes_used, inodes)


async def test_images_are_whole_or_absent_and_nothing_is_left_however_often_we_are_killed(
    registry: Registry, long: bool
) -> None:
    model = Model(registry, random.Random(20))
    for number in range(IMAGES):
        await asyncio.to_thread(model.push, number)
    with tempfile.TemporaryDirectory(prefix="bayplan-") as short:
        directory = Path(short)
        config = directory / "config.toml"
        config.write_text(CONFIG)
        for number in range(MANY_ROUNDS if long else ROUNDS):
            # A socket of its own: gRPC remembers for a while that nobody answers on another.
            name = f"{number}.sock"
            async with cri_process(directory, "--config", str(config), name=name) as running:
                await look(model, directory, running)
                await one_round(model, running, directory / name)
        async with cri_process(directory, "--config", str(config)) as running:
            await look(model, directory, running)
            await remove_all(running)
            await look_empty(model, directory)
    log.info("%s", dict(model.counts))


async def remove_all(running: CriProcess) -> None:
    answer = await running.client.list_images(cri.ListImagesRequest())
    for image in answer.images:
        await running.client.remove_image(cri.RemoveImageRequest(image=image.spec))


async def look_empty(model: Model, directory: Path) -> None:
    found = await asyncio.to_thread(inspect, directory / "store", model.expected)
    assert found.images == set()
