"""Killed at any moment, an image is there whole or not at all."""

import asyncio
import contextlib
import random
import tempfile
from pathlib import Path

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.store.store import ImageStore
from tests.images.parts.crashing import CriProcess, cri_process
from tests.images.parts.layouts import ImageBuilder, digest_of, linux, tar_of
from tests.images.parts.registry import Registry
from tests.images.parts.service import CONFIG, spec

KILLS = 6
HANDLERS = ("", "kata", "arm")


def push_images(registry: Registry) -> list[str]:
    names = []
    for number in range(4):
        builder = ImageBuilder()
        chance = random.Random(number)
        base = tar_of(*((f"base/{n}", chance.randbytes(2000)) for n in range(100)))
        entries = [
            builder.entry(base, tar_of((f"top-{number}", cpu.encode())), platform=linux(cpu))
            for cpu in ("amd64", "arm64")
        ]
        names.append(registry.push(builder, builder.index(*entries), f"crash:{number}"))
    return names


async def pull_all(running: CriProcess, names: list[str]) -> None:
    requests = [
        cri.PullImageRequest(image=spec(name, handler)) for name in names for handler in HANDLERS
    ]
    await asyncio.gather(*map(running.client.pull_image, requests))


async def test_an_image_is_there_whole_or_not_at_all_after_a_kill(registry: Registry) -> None:
    names = push_images(registry)
    with tempfile.TemporaryDirectory(prefix="bayplan-") as short:
        directory = Path(short)
        config = directory / "config.toml"
        config.write_text(CONFIG)
        acknowledged: set[tuple[str, str]] = set()
        for moment in range(KILLS):
            async with cri_process(directory, "--config", str(config)) as running:
                await everything_whole(directory, running, acknowledged)
                pulling = asyncio.ensure_future(pull_all(running, names))
                # Some progress each time, then death somewhere in the middle of the rest.
                await asyncio.wait([pulling], timeout=0.02 * moment)
                acknowledged |= await listed(running)
                await running.kill()
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await pulling
        async with cri_process(directory, "--config", str(config)) as running:
            await everything_whole(directory, running, acknowledged)
            await pull_all(running, names)
            assert len(await listed(running)) == len(names) * len(HANDLERS)


async def listed(running: CriProcess) -> set[tuple[str, str]]:
    answer = await running.client.list_images(cri.ListImagesRequest())
    return {(image.id, image.spec.runtime_handler) for image in answer.images}


async def everything_whole(
    directory: Path, running: CriProcess, acknowledged: set[tuple[str, str]]
) -> None:
    """Whatever was listed before is listed now, with content that verifies, and nothing else."""
    assert acknowledged <= await listed(running)
    store = directory / "store"
    await asyncio.to_thread(verify, store)


def verify(store: Path) -> None:
    for blob in (store / "blobs").iterdir():
        assert digest_of(blob.read_bytes()) == blob.name.replace("-", ":", 1)
    assert list((store / "ingest").iterdir()) == []
    for chain in (store / "chains").iterdir():
        assert len(list((chain / "base").iterdir())) == 100


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["file", "tree", "blob", "chain"]), max_size=6))
def test_whatever_a_crash_leaves_is_swept_at_the_start(litter: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ImageStore(root).close()
        for number, kind in enumerate(litter):
            leave(root, kind, number)
        store = ImageStore(root)
        try:
            for place in ("ingest", "blobs", "chains"):
                assert list((root / place).iterdir()) == []
        finally:
            store.close()


def leave(root: Path, kind: str, number: int) -> None:
    digest = f"sha256-{number:064x}"
    if kind == "file":
        (root / "ingest" / str(number)).write_bytes(b"half")
    elif kind == "tree":
        (root / "ingest" / str(number) / "deep").mkdir(parents=True)
    elif kind == "blob":
        (root / "blobs" / digest).write_bytes(b"whole")
    else:
        (root / "chains" / digest / "etc").mkdir(parents=True)
