"""A provider in another process, over mutual TLS: trusted, checked, and waited for only so long."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from bayplan.autoscaler.providers import ProviderOptions
from bayplan.autoscaler.providers.registry import open_provider
from bayplan.base.clock import START
from bayplan.client import Client
from bayplan.nodegroups import (
    GroupOptions,
    InvalidRequestError,
    NodeGroupError,
    NodeRef,
    Provider,
    ProviderUnavailableError,
    RefusedError,
)
from tests.autoscaler.providers.declared.test_overlay import limits
from tests.client.conftest import access, client

pytestmark = pytest.mark.whole


__all__ = ["access", "client"]


@contextmanager
def program(folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "tests.autoscaler.providers.externalgrpc.program", str(folder)]
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def opened(client: Client, folder: Path, who: str = "client") -> AsyncIterator[Provider]:
    options = ProviderOptions("externalgrpc", folder / f"{who}.yaml")
    async with open_provider(options, client) as provider:
        yield provider


async def test_a_provider_of_its_own_process_sells_nodes(client: Client, tmp_path: Path) -> None:
    with program(tmp_path):
        async with opened(client, tmp_path) as provider:
            await provider.refresh()
            await provider.increase("workers", 2)
            assert await provider.target_size("workers") == 4
            assert len(await provider.instances("workers")) == 4
            with pytest.raises(RefusedError, match="above its maximum 5"):
                await provider.increase("workers", 2)
            one = NodeRef("sim://workers/workers-1")
            await provider.delete_nodes("workers", [one])
            assert await provider.group_for_node(one) is None
            await provider.cleanup()


async def test_answers_that_make_no_sense_are_left_out_and_told(
    client: Client, tmp_path: Path
) -> None:
    with program(tmp_path):
        async with opened(client, tmp_path) as provider:
            assert [one.id for one in await provider.groups()] == ["gpus", "workers"]
            said = {one.group: one.text for one in await provider.problems()}
            assert said == {
                "negative": "min size -1 and max size 5 are invalid",
                "crossed": "min size 5 and max size 1 are invalid",
                "gpus": "the provider returned two groups with this id",
            }
            template = await provider.template("workers")
            assert limits(template) == {"files.csi.example.com": 3}
            (problem,) = template.problems
            assert "'disk.csi.example.com=many'" in problem
            with pytest.raises(InvalidRequestError, match=r"status.capacity.cpu.*lots"):
                await provider.template("gpus")
            assert (await provider.template("nameless")).node.name == "template-node-for-nameless"
            options = await provider.options("workers", GroupOptions())
            assert options == GroupOptions(scale_down_unneeded_time=60.0)
            with pytest.raises(NodeGroupError, match="target size -3 is negative"):
                await provider.target_size("gpus")
            with pytest.raises(NodeGroupError, match="inf, which is not a price"):
                await provider.node_price(NodeRef(), START, START)


@pytest.mark.parametrize("who", ["stranger", "nobody"])
async def test_who_shows_no_certificate_that_is_known_is_not_served(
    client: Client, tmp_path: Path, who: str
) -> None:
    with program(tmp_path):
        async with opened(client, tmp_path, who) as provider:
            with pytest.raises(ProviderUnavailableError):
                await provider.groups()


async def test_a_provider_that_hangs_dies_and_comes_back(client: Client, tmp_path: Path) -> None:
    with program(tmp_path) as (process, port):
        async with opened(client, tmp_path) as provider:
            assert len(await provider.groups()) == 2
            process.send_signal(signal.SIGSTOP)
            with pytest.raises(ProviderUnavailableError, match="Deadline"):
                await provider.groups()
            process.send_signal(signal.SIGCONT)
            assert len(await provider.groups()) == 2
            process.kill()
            process.wait()
            with pytest.raises(ProviderUnavailableError):
                await provider.increase("workers", 1)
        with program(tmp_path, port):
            async with opened(client, tmp_path) as provider:
                assert await provider.target_size("workers") == 2
