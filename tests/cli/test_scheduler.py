"""`bayplan scheduler` as a process: it serves, shows, compares, and ends in order."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest

from bayplan.cli.main import run
from bayplan.client import Client, connect, merge
from bayplan.client.resources import EVENTS, LEASES
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.pods import Pod
from tests.cli.commands import Command, command
from tests.scheduler.running_scheduler import node, pod

pytestmark = pytest.mark.whole


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
REFUSED = (
    "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No"
    " preemption victims found for incoming pod."
)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    config = ServerConfig(kubeconfig=tmp_path / "kubeconfig")
    async with ApiServer(config), connect(tmp_path / "kubeconfig") as made:
        yield made


def started(folder: Path, *options: str) -> AbstractAsyncContextManager[Command]:
    return command(folder, "scheduler", *options)


async def test_it_places_pods_says_so_and_ends_in_order(client: Client, tmp_path: Path) -> None:
    await client.create(node("a"))
    await client.create(pod("default", "p"))
    async with started(tmp_path, "-v", "--log-format", "json") as it:
        said = json.loads(await it.said("serving health"))
        url = said["msg"].split()[-1]
        assert url.startswith("http://127.0.0.1:")
        bound = json.loads(await it.said('"bound"'))
        assert (await client.get(Pod, "default", "p")).spec.node_name == "a"
        assert (bound["pod"], bound["node"], bound["level"]) == ("default/p", "a", "debug")
        async with aiohttp.ClientSession() as web:
            for page in ("healthz", "livez", "readyz"):
                async with web.get(f"{url}/{page}") as answer:
                    assert (answer.status, await answer.text()) == (200, "ok")
            async with web.get(f"{url}/metrics") as answer:
                counted = await answer.text()
        assert 'schedule_attempts_total{profile="bayplan",result="scheduled"} 1.0' in counted
        lease = await client.get(LEASES, "kube-system", "bayplan-scheduler")
        assert lease.spec.holder_identity
        it.process.send_signal(signal.SIGUSR2)
        assert (await it.line()).endswith("objects: equal")
        assert await it.end() == 0
        lease = await client.get(LEASES, "kube-system", "bayplan-scheduler")
        assert not lease.spec.holder_identity


async def test_a_dry_run_prints_a_line_a_decision_and_writes_nothing(
    client: Client, tmp_path: Path
) -> None:
    await client.create(node("a", cpu="1"))
    for name in ("one", "two"):
        await client.create(pod("default", name, cpu="600m"))
    before = await _versions(client)
    async with started(tmp_path, "--dry-run") as it:
        lines = [await it.line() for _ in range(2)]
        assert await it.end(signal.SIGINT) == 0
    assert sorted(lines) == [
        "default/one: would be bound to a",
        f"default/two: {REFUSED}",
    ]
    assert await _versions(client) == before


async def test_compare_looks_once_and_says_whether_all_is_equal(
    client: Client, tmp_path: Path
) -> None:
    await client.create(node("a"))
    async with started(tmp_path, "--compare") as it:
        assert (await it.line()).endswith("objects: equal")
        assert await it.process.wait() == 0


async def test_who_loses_the_lease_ends_with_a_failure(client: Client, tmp_path: Path) -> None:
    short = ("--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=200ms")
    async with started(tmp_path, "--leader-elect-resource-name=mine", *short) as it:
        await it.said("became leader")
        change = merge({"spec": {"holderIdentity": "another"}})
        await client.patch(LEASES, "kube-system", "mine", change=change)
        await it.said("no longer holds mine")
        assert await it.process.wait() == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--scheduler-name", "No Name"], "--scheduler-name No Name: not a valid name"),
        (["--feature-gates", "Nonsense=true"], "--feature-gates"),
        (["--listen", "nowhere"], "--listen nowhere"),
        (["--leader-elect-retry-period", "1 hour"], "--leader-elect-retry-period"),
        (["--leader-elect-retry-period", "1h"], "--leader-elect: leader election needs"),
        (["--config", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--kubeconfig", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_bad_input_is_refused_with_its_place(
    options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scheduler", *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_config_that_cannot_be_honoured_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(HEAD + "extenders:\n- urlPrefix: http://x\n")
    assert run(["scheduler", "--config", str(config)]) == 2
    assert "config.yaml:3: extenders" in capsys.readouterr().err
    config.write_text(HEAD)
    assert run(["scheduler", "--config", str(config), "--scheduler-name", "a"]) == 2
    assert (
        "--scheduler-name: must not be given with --config, which has the names"
        in capsys.readouterr().err
    )


async def _versions(client: Client) -> list[tuple[str, str]]:
    """All pods with their versions, and how much was said and held."""
    pods = (await client.list(Pod, "default")).items
    counts = [len((await client.list(kind)).items) for kind in (EVENTS, LEASES)]
    found = [(one.name, one.metadata.resource_version) for one in pods]
    return [*found, ("events and leases", str(counts))]
