"""A pull shows how far it has come, on a terminal only, and only if the runtime says."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageSpec, PullStep, pull_steps
from tests.images.parts.registry import Registry
from tests.images.peers.fixtures import Push
from tests.patience import PATIENCE


async def test_every_piece_of_a_pull_is_told_until_it_is_done(
    bayplan_socket: str, registry: Registry, push: Push
) -> None:
    image = push(registry, "progress:1")
    spec = ImageSpec(image.name)
    done: set[str] = set()

    async def listen() -> PullStep:
        async for step in pull_steps(bayplan_socket, spec):
            done.update([step.digest] if step.phase == "done" else [])
            if len(done) == 2:  # the config and the layer
                return step
        raise AssertionError("the runtime says nothing")

    listening = asyncio.ensure_future(listen())
    async with asyncio.timeout(PATIENCE), CriRuntime(bayplan_socket, timeout=PATIENCE) as runtime:
        while not listening.done():  # the first pulls may be over before anybody listens
            await runtime.remove_image(spec)
            await runtime.pull_image(spec, None, None)
    step = await listening
    assert (step.phase, step.done) == ("done", step.total)
    assert image.id in done


async def test_a_runtime_that_says_nothing_ends_the_listening_at_once(
    containerd_socket: str,
) -> None:
    steps = [step async for step in pull_steps(containerd_socket, ImageSpec("app:1"))]
    assert steps == []


def read_to_the_end(terminal: int) -> str:
    """All that is written to a terminal; Linux ends it with an error."""
    parts = []
    with suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as file:
        while part := file.read(4096):
            parts.append(part)
    return b"".join(parts).decode()


def test_bars_are_drawn_on_a_terminal(bayplan_socket: str, registry: Registry, push: Push) -> None:
    image = push(registry, "progress:2")
    command = [sys.executable, "-c", "from bayplan.cli.main import main; main()", "images", "pull"]
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read_to_the_end, ours)
        ended = subprocess.run(
            [*command, image.name, "--socket", bayplan_socket],
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
            timeout=PATIENCE,
            check=True,
        )
        os.close(theirs)
        drawn = reading.result()
    assert ended.stdout.decode() == f"Image is up to date for {image.id}\n"
    assert f"Pulling {image.name}" in drawn
    assert "\x1b[" in drawn
