"""`bayplan autoscaler` as a process: it buys, serves its plans, shows, and ends in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.cli.main import run
from bayplan.client import Client, connect, strategic
from bayplan.client.resources import LEASES
from bayplan.client.serving.health import HealthPages, serve_health
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.pods import Pod
from bayplan.lab import LiveLab
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, serve
from tests.cli.commands import Command, command
from tests.patience import PATIENCE
from tests.scheduler.running_scheduler import pod

pytestmark = pytest.mark.whole


CLUSTER = b"""
seed: 1
instanceTypes: [{name: a, cpu: 4, memory: 16Gi}]
nodeGroups: [{name: g, instanceType: a, count: 0, max: 5, start: 0.2}]
"""
FAST = ("--scan-interval", "200ms", "--listen", "127.0.0.1:0")
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[LiveLab]:
    spec = parse_cluster(CLUSTER, "cluster", tmp_path)
    config = ServerConfig(kubeconfig=tmp_path / "kubeconfig")
    async with LiveLab(spec, config) as lab:
        running = asyncio.ensure_future(lab.run())
        async with serve(lab.simulation.provider, ListenAddresses(socket=tmp_path / "cloud.sock")):
            yield lab
        lab.stop()
        await running


def started(folder: Path, *options: str) -> AbstractAsyncContextManager[Command]:
    cloud = ("--cloud-provider", "simulated", "--cloud-config", str(folder / "cloud.sock"))
    return command(folder, "autoscaler", *cloud, *FAST, *options)


async def refused_pod(client: Client, name: str, cpu: str = "3") -> None:
    """A pod that no scheduler found a node for."""
    await client.create(pod("default", name, cpu=cpu))
    change = strategic({"status": {"conditions": [REFUSED]}})
    await client.patch(Pod, "default", name, change=change, subresource="status")


async def bought(lab: LiveLab, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        news = asyncio.Event()
        lab.simulation.cloud.listeners.append(lambda _: news.set())
        while len(lab.simulation.cloud.instances) < count:
            news.clear()
            await news.wait()


async def fetched(url: str, **headers: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        if answer.content_type == "application/json":
            return answer.status, await answer.json()
        return answer.status, await answer.text()


async def test_it_buys_serves_its_plans_and_gives_its_lease_back(
    lab: LiveLab, tmp_path: Path
) -> None:
    async with (
        connect(tmp_path / "kubeconfig") as client,
        started(tmp_path, "--leader-elect-retry-period", "200ms") as it,
    ):
        serving = await it.said("serving health, metrics and plans at")
        url = serving.split("plans at ")[1].split('"')[0].split()[0]
        await refused_pod(client, "a")
        await refused_pod(client, "b")
        await bought(lab, 2)
        status, plans = await fetched(f"{url}/plan")
        assert status == 200
        scale_ups = [one for plan in plans for one in plan["scale_ups"]]
        assert [one["group"] for one in scale_ups] == ["g"] * len(scale_ups)
        async with asyncio.timeout(PATIENCE):
            # Nodes come before the loop that has added them ends.
            while "scaled_up_nodes_total 2.0" not in (await fetched(f"{url}/metrics"))[1]:
                continue
        assert await fetched(f"{url}/readyz") == (200, "ok")
        assert await it.end() == 0
        lease = await client.get(LEASES, "kube-system", "cluster-autoscaler")
        assert not lease.spec.holder_identity


async def test_a_dry_run_shows_and_writes_nothing(lab: LiveLab, tmp_path: Path) -> None:
    async with connect(tmp_path / "kubeconfig") as client:
        await refused_pod(client, "a")
        async with started(tmp_path, "--dry-run") as it:
            assert await it.line() == "g: would be scaled up by 1"
        assert not lab.simulation.cloud.instances
        assert not (await client.list(LEASES)).items


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--cloud-provider", "nowhere"], "there is no cloud provider 'nowhere'"),
        (["--expander", "best"], "unknown expander 'best'"),
        (["--cores-total", "many"], "--cores-total 'many': write it as MIN:MAX"),
        (["--plan-token-file", "/nowhere"], "--plan-token-file /nowhere"),
        (["--scan-interval", "soon"], "--scan-interval"),
    ],
)
def test_what_makes_no_sense_is_said(
    options: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    cloud = () if options[0] == "--cloud-provider" else ("--cloud-provider", "simulated")
    nowhere = ("--kubeconfig", str(tmp_path / "none"))
    assert run(["autoscaler", *nowhere, *cloud, *options]) == 2
    assert problem in capsys.readouterr().err


async def test_plans_are_for_this_machine_and_whoever_has_the_token() -> None:
    pages = HealthPages(str, bytes, {"/plan": lambda: b"[]"}, token="a-token-of-some-length")
    async with serve_health("127.0.0.1", 0, pages) as url:
        assert (await fetched(f"{url}/plan"))[0] == 200
        forwarded = {"X-Forwarded-For": "192.0.2.1"}
        assert (await fetched(f"{url}/plan", **forwarded))[0] == 403
        wrong = {**forwarded, "Authorization": "Bearer a-token-of-some-lengtH"}
        assert (await fetched(f"{url}/plan", **wrong))[0] == 403
        right = {**forwarded, "Authorization": "Bearer a-token-of-some-length"}
        assert (await fetched(f"{url}/plan", **right))[0] == 200
    async with serve_health(
        "127.0.0.1", 0, HealthPages(str, bytes, {"/plan": lambda: b"[]"})
    ) as url:
        nothing = {"X-Forwarded-For": "192.0.2.1", "Authorization": "Bearer "}
        assert (await fetched(f"{url}/plan", **nothing))[0] == 403
