"""Runs as an indexed Job: the same results to the byte, by pods that may do hardly anything.

Nothing runs images here, so the test does what a kubelet would: it starts each pod's command as a
process, with the pod's own account, and says how it ended.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.client import Client, Untyped, connect, untyped
from bayplan.client.errors import NotFoundError
from bayplan.client.resources import CONFIG_MAPS, Resource
from bayplan.client.verbs.writes import strategic
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.pods import Pod
from bayplan.lab import LiveLab, VirtualLab
from bayplan.lab.simulation.pool import run_simulation
from bayplan.lab.simulation.remote import (
    FOLDER,
    PackingError,
    SimulationJob,
    job_object,
    job_objects,
    pack,
    pack_inputs,
    read_result,
    run_on_cluster,
    unpack,
    unpack_inputs,
)
from bayplan.lab.simulation.runspec import encode
from tests.accounts import token_of, write_tokens
from tests.lab.simulation.runs import inputs, variant
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


NAME = "sim"
HOUR = 3600.0
INPUTS = inputs(variant(), seeds=2, seconds=300.0)


class Kubelet:
    """Runs the pods of Jobs as processes; the first one of all fails, for no fault of its own."""

    def __init__(
        self, client: Client, kubeconfig: Path, folder: Path, *, mends: bool = True
    ) -> None:
        self._client = client
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._mends = mends
        self._seen: set[str] = set()
        self.ended: list[tuple[str, int]] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                for pod in (await self._client.list(Pod, "default")).items:
                    if pod.metadata.uid not in self._seen and pod.status.phase == "Pending":
                        self._seen.add(pod.metadata.uid)
                        fails = len(self._seen) == 1 or not self._mends
                        group.create_task(self._run(pod.name, fails=fails))
                await asyncio.sleep(0.2)

    async def _run(self, name: str, *, fails: bool) -> None:
        found: Any = await self._client.get(untyped("", "v1", "pods", "Pod"), "default", name)
        code = 137 if fails else await self._process(found)
        phase = "Failed" if code else "Succeeded"
        change = strategic({"status": {"phase": phase}})
        await self._client.patch(Pod, "default", name, change=change, subresource="status")
        index = found["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        self.ended.append((index, code))

    async def _process(self, pod: dict[str, Any]) -> int:
        (container,) = pod["spec"]["containers"]
        account = pod["spec"]["serviceAccountName"]
        folder = await self._mounted(pod)
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        words = [
            one.replace("$(INDEX)", index).replace(f"={FOLDER}/", f"={folder}/")
            for one in container["args"]
        ]
        environment = {**os.environ, "KUBECONFIG": str(self._config(account))}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *container["command"], *words), env=environment
        )
        return await process.wait()

    async def _mounted(self, pod: dict[str, Any]) -> Path:
        name = pod["spec"]["volumes"][0]["configMap"]["name"]
        held: Any = await self._client.get(CONFIG_MAPS, "default", name)
        folder = self._folder / str(pod["metadata"]["name"])
        folder.mkdir()
        for file, data in held["binaryData"].items():
            (folder / file).write_bytes(base64.b64decode(data))
        return folder

    def _config(self, account: str) -> Path:
        said = yaml.safe_load(self._kubeconfig.read_text())
        said["users"][0]["user"] = {"token": token_of(account)}
        path = self._folder / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(said))
        return path


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[Client, Path]]:
    """A cluster with a controller of Jobs, that lets everybody do only what they may."""
    kubeconfig = folder / "kubeconfig"
    tokens = write_tokens(folder, [NAME], "default")
    config = ServerConfig(kubeconfig=kubeconfig, tokens=tokens, authorization="rbac")
    async with LiveLab(parse_cluster(b"", "empty", folder), config) as lab:
        working = asyncio.ensure_future(lab.run())
        async with connect(kubeconfig) as client:
            yield client, kubeconfig
        lab.stop()
        await working


async def until_gone(client: Client) -> None:
    """Everything that belonged to the Job goes with it."""
    things: list[Any] = [job_object(_place()), *job_objects(_place(), "uid", b"")]
    async with asyncio.timeout(PATIENCE):
        for one in things:
            resource = await client.discover(one["apiVersion"], one["kind"])
            while await _is_there(client, resource, one["metadata"]["name"]):  # noqa: ASYNC110 - as a user would look
                await asyncio.sleep(0.2)


async def _is_there(client: Client, resource: Resource[Untyped], name: str) -> bool:
    try:
        await client.get(resource, "default", name)
    except NotFoundError:
        return False
    return True


def _place() -> SimulationJob:
    return SimulationJob("default", NAME, "registry.example.com/bayplan:1", len(INPUTS.runs()), 2)


async def test_a_job_gives_the_same_bytes_as_this_machine(tmp_path: Path) -> None:
    done: list[int] = []
    async with cluster(tmp_path) as (client, kubeconfig), asyncio.timeout(PATIENCE):
        kubelet = Kubelet(client, kubeconfig, tmp_path)
        running = asyncio.ensure_future(kubelet.run())
        orders, packed = INPUTS.runs(), pack_inputs(INPUTS)
        results, failures = await run_on_cluster(client, _place(), packed, orders, done.append)
        running.cancel()
        await until_gone(client)
    assert failures == []
    here = [await asyncio.to_thread(run_simulation, one) for one in orders]
    assert [encode(one) for _, one in results] == [encode(one) for one in here]
    assert sorted(code for _, code in kubelet.ended) == [0, 0, 137]
    assert done[-1] == 2


@pytest.mark.virtual
async def test_runs_that_never_come_to_an_end_are_told_and_nothing_is_left(tmp_path: Path) -> None:
    async with VirtualLab(parse_cluster(b"", "empty", tmp_path)) as lab:
        client, working = lab.client(), asyncio.ensure_future(lab.run(HOUR))
        kubelet = Kubelet(client, tmp_path / "kubeconfig", tmp_path, mends=False)
        running = asyncio.ensure_future(kubelet.run())
        async with asyncio.timeout(HOUR):  # it is tried again later and later
            results, failures = await run_on_cluster(
                client, _place(), pack_inputs(INPUTS), INPUTS.runs(), lambda _: None
            )
            running.cancel()
            await until_gone(client)
        lab.stop()
        await working
    assert results == []
    assert {one.run.seed for one in failures} == {1, 2}
    assert "BackoffLimitExceeded" in failures[0].reason


async def test_whoever_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (client, _), asyncio.timeout(PATIENCE):
        seen = asyncio.Event()
        work = run_on_cluster(
            client, _place(), pack_inputs(INPUTS), INPUTS.runs(), lambda _: seen.set()
        )
        task = asyncio.ensure_future(work)
        await seen.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until_gone(client)


def test_inputs_are_what_they_were_and_too_large_ones_are_refused() -> None:
    assert unpack_inputs(pack_inputs(INPUTS)) == INPUTS
    with pytest.raises(PackingError, match="more than a ConfigMap holds"):
        pack(os.urandom(1 << 20), "the trace")


@pytest.mark.parametrize("data", [b"", b"nonsense", pack(b"{}", "x")[:-3]])
def test_what_is_damaged_is_told(data: bytes) -> None:
    with pytest.raises(PackingError):
        unpack(data)
    with pytest.raises(PackingError):
        read_result({"binaryData": {"result.json.zst": base64.b64encode(data).decode()}})


def test_a_config_map_without_a_result_has_none() -> None:
    assert read_result({}) is None
    with pytest.raises(PackingError):
        read_result({"binaryData": {"result.json.zst": "!"}})
