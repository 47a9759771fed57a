"""`bayplan up` as users have it: a process that kubectl talks to and that leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run as bayplan
from tests.kubectl import KUBECTL, needs_kubectl
from tests.patience import PATIENCE

LEDGER = Path(__file__).parents[2] / "examples" / "stories" / "workloads" / "ledger.yaml"
pytestmark = [pytest.mark.whole, pytest.mark.wall]

CLUSTER = """
csiDrivers: [{name: disk.csi.example.com, provision: 0.1, attach: 0.1, detach: 0.1}]
storageClasses: [{name: disks, driver: disk.csi.example.com, default: true}]
instanceTypes: [{name: large, cpu: 16, memory: 64Gi}]
nodeGroups:
  - name: workers
    instanceType: large
    count: 3
    start: 0.1
    # CSINode says 20, but the machine can attach only 8.
    drivers: [{name: disk.csi.example.com, limit: 20, realLimit: 8, delay: 0.1}]
"""


class UpProcess:
    """A running `bayplan up`."""

    def __init__(self, process: asyncio.subprocess.Process, kubeconfig: str) -> None:
        self.process = process
        self.kubeconfig = kubeconfig
        self.folder = Path(kubeconfig).parent

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        environment = {**os.environ, "KUBECONFIG": self.kubeconfig}
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await asyncio.wait_for(process.communicate(stdin.encode()), PATIENCE)
        assert process.returncode == 0, errors.decode()
        return out.decode()

    async def items(self, kind: str) -> list[Any]:
        found = json.loads(await self.kubectl("get", kind, "-o", "json"))["items"]
        assert isinstance(found, list)
        return found

    async def until(self, kind: str, holds: Callable[[list[Any]], bool]) -> list[Any]:
        """Ask for a kind until it is as it should be."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await self.items(kind)
                if holds(found):
                    return found
                await self.kubectl("get", "--raw", "/readyz")

    async def bind(self, pod: str, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod},
            "target": {"kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/default/pods/{pod}/binding"
        await self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))


@asynccontextmanager
async def up(folder: Path, *options: str, text: str = CLUSTER) -> AsyncIterator[UpProcess]:
    """Start it, and end it by Ctrl-C."""
    file = folder / "cluster.yaml"
    file.write_text(text)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bayplan", "up", "-f", str(file), *options),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        lines = [await asyncio.wait_for(process.stdout.readline(), PATIENCE) for _ in range(2)]
        yield UpProcess(process, lines[1].decode().strip().removeprefix("export KUBECONFIG="))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


@needs_kubectl
async def test_claims_wait_until_their_pods_are_placed_and_a_full_node_fails_to_attach(
    tmp_path: Path,
) -> None:
    async with up(tmp_path) as cluster:
        await cluster.kubectl("apply", "-f", str(LEDGER))
        await cluster.until("pods", lambda pods: len(pods) == 20)
        claims = await cluster.until("pvc", lambda claims: len(claims) == 20)
        assert {claim["status"]["phase"] for claim in claims} == {"Pending"}
        await cluster.until("csinodes", _all_have_drivers)
        for number in range(9):
            await cluster.bind(f"ledger-{number}", "workers-1")
        claims = await cluster.until("pvc", lambda claims: _phases(claims).count("Bound") == 9)
        assert _phases(claims).count("Pending") == 11
        pods = await cluster.until("pods", lambda pods: _phases(pods).count("Running") == 8)
        stuck = [
            pod["metadata"]["name"]
            for pod in pods
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"
        ]
        events = await cluster.until(
            "events", lambda events: any(one["reason"] == "FailedAttachVolume" for one in events)
        )
        failed = {
            one["involvedObject"]["name"] for one in events if one["reason"] == "FailedAttachVolume"
        }
        assert failed == set(stuck)
        assert "FailedAttachVolume" in await cluster.kubectl("describe", "pod", stuck[0])


@needs_kubectl
async def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    async with up(tmp_path) as cluster:
        assert _left_in(cluster.folder) == ["kubeconfig"]
        await cluster.kubectl("get", "nodes")
    assert _left_in(cluster.folder.parent, cluster.folder.name) == []
    assert _left_in(tmp_path) == ["cluster.yaml"]


@needs_kubectl
async def test_kept_data_is_there_the_next_time_and_its_nodes_go_on(tmp_path: Path) -> None:
    data = str(tmp_path / "data.db")
    async with up(tmp_path, "--data", data) as cluster:
        nodes = await cluster.until("nodes", lambda nodes: len(nodes) == 3 and _ready(nodes))
        await cluster.kubectl("apply", "-f", str(LEDGER))
        await cluster.until("pods", lambda pods: len(pods) == 20)
    async with up(tmp_path, "--data", data) as cluster:
        again = await cluster.items("nodes")
        assert [_identity(one) for one in again] == [_identity(one) for one in nodes]
        await cluster.bind("ledger-0", "workers-1")
        await cluster.until("pods", lambda pods: "Running" in _phases(pods))


@needs_kubectl
async def test_a_workload_can_be_placed_scaled_and_rolled_with_kubectl(tmp_path: Path) -> None:
    async with up(tmp_path, "--with", "scheduler") as cluster:
        await cluster.kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
        await cluster.kubectl("rollout", "status", "deployment/web", "--timeout=300s")
        await cluster.kubectl("set", "image", "deployment/web", "web=web:2")
        await cluster.kubectl("rollout", "status", "deployment/web", "--timeout=300s")
        await cluster.kubectl("scale", "deployment/web", "--replicas=1")
        pods = await cluster.until("pods", lambda pods: len(pods) == 1)
        node = pods[0]["spec"]["nodeName"]
        await cluster.kubectl("drain", node, "--timeout=300s")
        await cluster.until(
            "pods", lambda pods: _phases(pods) == ["Running"] and _node(pods[0]) != node
        )


def test_a_run_on_the_wall_clock_ends_after_its_time_with_a_report(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    command = [sys.executable, "-m", "bayplan", "up", "-f", str(file), "--for", "500ms"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "cost" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--virtual"], "needs --for"),
        (["--for", "soon"], "is not a duration"),
        (["--for", "1s", "--log", "x"], "--log"),
        (["--virtual", "--for", "1s", "--kubeconfig", "x"], "--kubeconfig"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    assert bayplan(["up", "-f", str(file), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_kubeconfig_of_another_cluster_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    file, mine = tmp_path / "cluster.yaml", tmp_path / "config"
    file.write_text(CLUSTER)
    mine.write_text("kind: Config\nclusters: [{name: production, cluster: {}}]\n")
    assert bayplan(["up", "-f", str(file), "--kubeconfig", str(mine), "--for", "1s"]) == 2
    assert "production" in mine.read_text()


def test_a_bad_file_is_refused_with_line_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("nodeGroups:\n  - name: g\n    instanceType: x\n")
    assert bayplan(["up", "-f", str(file)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "cluster.yaml:3: nodeGroups[0].instanceType: there is no instance type 'x'" in said


def _left_in(folder: Path, name: str = "") -> list[str]:
    return sorted(path.name for path in folder.iterdir() if name in ("", path.name))


def _all_have_drivers(nodes: list[Any]) -> bool:
    return len(nodes) == 3 and all(node["spec"]["drivers"] for node in nodes)


def _phases(objects: list[Any]) -> list[str]:
    return [one["status"]["phase"] for one in objects]


def _node(pod: Any) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _ready(nodes: list[Any]) -> bool:
    return all(
        condition["status"] == "True"
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    )


def _identity(obj: Any) -> tuple[str, str]:
    return obj["metadata"]["name"], obj["metadata"]["uid"]
