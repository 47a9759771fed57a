"""`bayplan node-agent --limits` as processes: replicas of which one leads, and one for a node."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bayplan.client import Client, connect
from bayplan.client.resources import LEASES
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.nodes import Node
from bayplan.node.agent import NAME
from tests.node.running_agent import EBS_KEY, RunningAgent, limits_of, node, retype
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


RUN = (sys.executable, "-m", "bayplan", "node-agent", "--limits")


@asynccontextmanager
async def agent(kubeconfig: Path, *options: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *RUN, f"--kubeconfig={kubeconfig}", *options, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def _line(process: Process, pattern: str) -> re.Match[str]:
    """The first line that it writes and that fits."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        while line := (await process.stderr.readline()).decode():
            if found := re.search(pattern, line):
                return found
    raise AssertionError(f"it never said {pattern}")


def _at(client: Client) -> RunningAgent:
    return RunningAgent(client, None, None, None)  # type: ignore[arg-type]


async def test_of_two_replicas_one_publishes_and_the_other_takes_over(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    options = ("--all-nodes", "--leader-elect-retry-period=200ms")  # who ends gives its lease back
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        await client.create(node("a", "m5.large"))
        async with agent(path, *options, "--listen=127.0.0.1:0") as first:
            url = (await _line(first, r"metrics at (\S+)"))[1]
            await _at(client).publishes("a", {EBS_KEY: 26})
            async with aiohttp.ClientSession() as session:
                page = await (await session.get(f"{url}/metrics")).text()
                ready = await session.get(f"{url}/readyz")
                assert ready.status == 200
            assert "bayplan_attach_limit_published 1.0" in page
            async with agent(path, *options) as second:
                first.send_signal(signal.SIGTERM)
                await first.communicate()
                assert first.returncode == 0
                await _line(second, "publishing attach limits of all nodes")
                await retype(client, "a", "m4.large")
                await _at(client).publishes("a", {EBS_KEY: 39})
        lease = await client.get(LEASES, "kube-system", NAME)
        assert lease.spec.lease_transitions == 1


async def test_for_one_node_it_needs_no_lease_and_its_file_is_followed(tmp_path: Path) -> None:
    path, file = tmp_path / "kubeconfig", tmp_path / "limits.yaml"
    file.write_text("aws-ebs: {m5.large: 11}")
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        for name in ("a", "b"):
            await client.create(node(name, "m5.large"))
        async with agent(path, "--node=a", f"--limits-file={file}") as process:
            await _at(client).publishes("a", {EBS_KEY: 11})
            file.write_text("aws-ebs: {m5.*: 9, m5.large: 12}")
            await retype(client, "a", "m5.xlarge")
            await _at(client).publishes("a", {EBS_KEY: 9})
            process.send_signal(signal.SIGTERM)
            await process.communicate()
            assert process.returncode == 0
        assert not (await client.list(LEASES, "kube-system")).items
        assert limits_of((await client.get(Node, "b")).status.allocatable) == {}


async def test_what_makes_no_sense_is_said_and_ends_it(tmp_path: Path) -> None:
    for options, said in (
        (["--limits-file=nowhere"], "--limits-file: nowhere"),
        (["--feature-gates=Nothing=true"], "--feature-gates: unknown feature gate"),
        (["--reserve-volumes=-1"], "--reserve-volumes"),
    ):
        async with agent(tmp_path / "kubeconfig", *options) as process:
            _, stderr = await process.communicate()
            assert process.returncode == 2
            assert said in stderr.decode()
