"""Daemons as processes, all by one runner: what ends them, with which exit code and which words."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bayplan.admission.daemon import WebhookDaemon
from bayplan.cli.errors import BadInput
from bayplan.cli.main import run
from bayplan.cli.ui import opened
from bayplan.client import Client, connect, merge
from bayplan.client.resources import LEASES
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.coordination import Lease
from bayplan.lab import LiveLab
from bayplan.node.agent import LimitsAgent
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, serve
from bayplan.recordings import RecordingWriter
from bayplan.ui.page import ClusterPage
from tests.cli.commands import command
from tests.node.running_agent import seen

CLUSTER = b"""
seed: 1
instanceTypes: [{name: a, cpu: 4, memory: 16Gi}]
nodeGroups: [{name: g, instanceType: a, count: 0, max: 5}]
"""
SHORT = ("--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=200ms")
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: it, user: {token: secret}}]
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A daemon, and what is asked of it."""

    words: str
    """Its command line; {} is the folder of its files."""
    started: str
    """What it says once it is at work."""
    addresses: tuple[str, ...]
    """Options with an address or a port to listen at."""
    lease: str = ""
    has_cluster: bool = True

    def line(self, folder: Path, *more: str) -> list[str]:
        return [*self.words.format(folder).split(), *more]

    def anywhere(self, folder: Path) -> list[str]:
        """Its command line, at a free port."""
        listens = "--listen" in self.addresses
        return self.line(folder, *(("--listen", "127.0.0.1:0") if listens else ()))


SIMULATED = "--cloud-provider simulated --cloud-config {0}/cloud.sock"
DAEMONS = {
    "scheduler": Case("scheduler", "serving pods of", ("--listen",), "bayplan-scheduler"),
    "autoscaler": Case(
        f"autoscaler {SIMULATED}", "plans at", ("--listen", "--address"), "cluster-autoscaler"
    ),
    "webhook": Case(
        "webhook --url https://127.0.0.1:0", "serving health", ("--listen", "--health-listen")
    ),
    "node-agent": Case(
        "node-agent --limits --all-nodes",
        "publishing attach limits",
        ("--listen", "--metrics-port"),
        "bayplan-node-limits",
    ),
    "cri": Case(
        "cri --socket {0}/s --root {0}/r",
        "for the runtime handlers",
        ("--metrics-port",),
        has_cluster=False,
    ),
}
ADDRESSES = [(name, one) for name, case in DAEMONS.items() for one in case.addresses]
OF_A_CLUSTER = [name for name, case in DAEMONS.items() if case.has_cluster]
WITH_LEASE = [name for name, case in DAEMONS.items() if case.lease]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as name:
        yield Path(name)


@pytest.fixture
def nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kubeconfig and a cloud's socket that lead nowhere."""
    (folder / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    with closing(socket.socket(socket.AF_UNIX)) as unused:
        unused.bind(str(folder / "cloud.sock"))
    return folder


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    """A client of a cluster with a cloud, for which there is a kubeconfig in the folder."""
    spec = parse_cluster(CLUSTER, "cluster", folder)
    path = folder / "kubeconfig"
    async with LiveLab(spec, ServerConfig(kubeconfig=path)) as lab:
        running = asyncio.ensure_future(lab.run())
        cloud = serve(lab.simulation.provider, ListenAddresses(socket=folder / "cloud.sock"))
        async with cloud, connect(path) as made:
            yield made
        lab.stop()
        await running


@pytest.mark.parametrize(("name", "option"), ADDRESSES)
def test_an_address_in_use_is_bad_input_that_names_its_option(
    name: str,
    option: str,
    nowhere: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        where = str(port) if option == "--metrics-port" else f"127.0.0.1:{port}"
        assert run(DAEMONS[name].line(nowhere, option, where)) == 2
    said = " ".join(capsys.readouterr().err.split())
    blamed = "--listen" if option == "--address" else option
    assert re.search(rf"error: {blamed} {where}: .*[Aa]ddress already in use", said)


@pytest.mark.parametrize("name", OF_A_CLUSTER)
def test_a_kubeconfig_that_cannot_be_read_is_bad_input(
    name: str, nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DAEMONS[name].line(nowhere, "--kubeconfig", "/nowhere/at/all")) == 2
    assert "error: no kubeconfig at /nowhere/at/all" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", DAEMONS)
@pytest.mark.usefixtures("client")
async def test_a_signal_ends_it_in_order(name: str, number: signal.Signals, folder: Path) -> None:
    case = DAEMONS[name]
    async with command(folder, *case.anywhere(folder)) as it:
        await it.said(case.started)
        assert await it.end(number) == 0


@pytest.mark.parametrize("name", WITH_LEASE)
async def test_a_lost_lease_ends_it_with_a_failure(name: str, folder: Path, client: Client) -> None:
    case = DAEMONS[name]
    async with command(folder, *case.anywhere(folder), *SHORT) as it:
        await seen(
            client, Lease, lambda one: one.name == case.lease and bool(one.spec.holder_identity)
        )
        change = merge({"spec": {"holderIdentity": "another"}})
        await client.patch(LEASES, "kube-system", case.lease, change=change)
        await it.said(f"no longer holds {case.lease}")
        assert await it.process.wait() == 1


async def _fail(*_: object) -> None:
    raise OSError(13, "Permission denied", "/some/file")


@pytest.mark.parametrize(
    ("words", "of"),
    [
        ("webhook --url https://127.0.0.1:0", WebhookDaemon),
        ("node-agent --limits --listen 127.0.0.1:0", LimitsAgent),
    ],
    ids=["webhook", "node-agent"],
)
@pytest.mark.usefixtures("nowhere")
def test_a_failure_at_work_is_not_blamed_on_the_address(
    words: str, of: type, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(of, "lead", _fail)
    assert run(words.split()) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "Permission denied: '/some/file'" in said
    assert "listen" not in said


def test_a_failure_of_the_page_is_not_blamed_on_its_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def failing(_: ClusterPage) -> AsyncIterator[None]:
        await _fail()
        yield

    monkeypatch.setattr(ClusterPage, "running", failing)
    with pytest.raises(OSError, match="/some/file"):
        run(["ui", "-f", "examples/cluster"])
    assert "--listen" not in capsys.readouterr().err


def test_a_failure_of_a_replay_is_not_blamed_on_its_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.bpr"
    with RecordingWriter(path, name="test", start=datetime.now(UTC)):
        pass
    with pytest.raises(OSError, match="/some/file"), opened(path):
        raise PermissionError(13, "Permission denied", "/some/file")
    with pytest.raises(BadInput, match="No such file"), opened(tmp_path / "none.bpr"):
        pass
