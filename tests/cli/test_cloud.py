"""The cloud of a running `bayplan up`, for strangers, for people, and after a kill."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run as bayplan
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


CLUSTER = """
csiDrivers: [{name: disk.csi.example.com}]
instanceTypes: [{name: large, cpu: 8, memory: 32Gi, price: 0.5}]
nodeGroups:
  - name: workers
    instanceType: large
    count: 2
    max: 5
    start: 0.1
    drivers: [{name: disk.csi.example.com, limit: 8, delay: 0.1}]
  - {name: spare, instanceType: large, max: 3, min: 1, count: 1, start: 0.1}
"""


@contextmanager
def up(folder: Path, *options: str, end: int = signal.SIGINT) -> Iterator[dict[str, str]]:
    """Start it; gives what it says to export."""
    file = folder / "cluster.yaml"
    file.write_text(CLUSTER)
    command = [sys.executable, "-m", "bayplan", "up", "-f", str(file), *options]
    # What a kill leaves behind is left in the test's own folder.
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(4)]
        said = [line.removeprefix("export ") for line in lines if line.startswith("export ")]
        try:
            yield dict(line.split("=", 1) for line in said)
        finally:
            process.send_signal(end)
            assert process.wait(PATIENCE) in (0, -signal.SIGKILL)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with up(tmp_path, "--cloud-socket", str(tmp_path / "c.sock")) as exported:
        for name, value in exported.items():
            monkeypatch.setenv(name, value)
        yield Path(exported["BAYPLAN_CLOUD"])


class Shell:
    """`bayplan cloud` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: str) -> tuple[int, str]:
        code = bayplan(["cloud", *words])
        said = self._capsys.readouterr()
        return code, said.out + said.err

    def groups(self) -> dict[str, Any]:
        code, said = self.run("list", "-o", "json")
        assert code == 0, said
        return {one["id"]: one for one in json.loads(said)["nodeGroups"]}

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            if holds(found := self.groups()):
                return found
        raise AssertionError(found)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_a_client_made_from_the_public_protocol_scales_a_group_up_and_down(tmp_path: Path) -> None:
    with up(tmp_path, "--cloud-address", "127.0.0.1:0") as exported:
        command = [sys.executable, "-m", "tests.nodegroups.externalgrpc.public_client"]
        command += [exported["BAYPLAN_CLOUD"], str(tmp_path)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    node = base64.b64decode(told.pop("NodeGroupTemplateNodeInfo")["nodeBytes"])
    assert b"disk.csi.example.com=8" in node
    told.pop("NodeGroupNodes")
    workers = {"id": "workers", "maxSize": 5, "debug": "large in zone-a"}
    assert told == {
        "Refresh": {},
        "Cleanup": {},
        "NodeGroups": {
            "nodeGroups": [
                {"id": "spare", "minSize": 1, "maxSize": 3, "debug": "large in zone-a"},
                workers,
            ]
        },
        "GPULabel": {"label": "simulation.bayplan.io/gpu"},
        "GetAvailableGPUTypes": {},
        "NodeGroupIncreaseSize": {},
        "target after increase": {"targetSize": 4},
        "NodeGroupForNode": {"nodeGroup": workers},
        "stranger": {"nodeGroup": {}},
        "NodeGroupDeleteNodes": {},
        "target after delete": {"targetSize": 2},
        "PricingNodePrice": {"price": 1.0},
        "PricingPodPrice": {},
        "NodeGroupGetOptions": "UNIMPLEMENTED",
        "unknown group": "NOT_FOUND",
        "above maximum": "FAILED_PRECONDITION",
        "by nothing": "INVALID_ARGUMENT",
        "nothing is on its way": "FAILED_PRECONDITION",
        "the wrong way": "INVALID_ARGUMENT",
    }


@pytest.mark.usefixtures("cloud")
def test_people_list_and_resize_groups(shell: Shell) -> None:
    shell.until(lambda groups: groups["workers"]["instances"] == {"running": 2})
    code, said = shell.run("list")
    assert code == 0
    assert max(len(line) for line in said.splitlines()) <= 80
    assert said.splitlines()[-1].split() == ["workers", "0", "5", "2", "2", "0", "0", "0.5"]
    assert shell.run("resize", "workers", "3") == (0, "workers: 2 -> 3, added 1\n")
    assert shell.run("resize", "workers", "3") == (0, "workers: size is already 3\n")
    shell.until(lambda groups: groups["workers"]["instances"] == {"running": 3})
    gone = "workers: 3 -> 1, removed sim://workers/workers-3, sim://workers/workers-2\n"
    assert shell.run("resize", "workers", "1") == (0, gone)
    code, said = shell.run("list", "workers")
    assert said.split() == ["INSTANCE", "STATE", "ERROR", "sim://workers/workers-1", "running"]


@pytest.mark.usefixtures("cloud")
def test_what_the_cloud_refuses_is_a_no_and_what_is_not_there_a_wrong_question(
    shell: Shell,
) -> None:
    code, said = shell.run("resize", "workers", "9")
    assert (code, said) == (1, "error: node group workers: 9 is above its maximum 5\n")
    code, said = shell.run("resize", "others", "1")
    assert code == 2
    assert "there is no node group 'others'; there are: spare, workers" in said
    assert shell.run("resize", "workers", "--", "-1")[0] == 2
    assert shell.run("list", "others")[0] == 2
    assert shell.run("list", "--cloud", "/nowhere")[0] == 2


def test_faults_come_and_go_by_name(shell: Shell, cloud: Path) -> None:
    code, said = shell.run("fail", "quota", "--group", "workers")
    assert (code, said.split(":")[0]) == (0, "quota-workers")
    limit = time.monotonic() + PATIENCE
    while (refused := shell.run("resize", "workers", "5"))[0] == 0:
        assert time.monotonic() < limit
        shell.run("resize", "workers", "2")
    assert refused == (1, "error: node group workers: quota exceeded\n")
    assert "quota-workers" in shell.run("recover")[1]
    assert shell.run("recover", "other")[0] == 2
    assert shell.run("recover", "quota-workers") == (0, "no faults\n")
    while shell.run("resize", "workers", "5")[0]:
        assert time.monotonic() < limit
    assert shell.run("fail", "quota", "--zone", "zone-a")[0] == 2
    assert shell.run("fail", "slow-start", "--delay", "long")[0] == 2
    code, said = shell.run("fail", "quota", "--group", "worker")
    assert (code, "there is no node group 'worker'; did you mean" in said) == (2, True)
    assert shell.run("fail", "nonsense")[0] == 2
    assert cloud.exists()


def test_without_a_cloud_it_is_said_which_one_is_missing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BAYPLAN_CLOUD", raising=False)
    code, said = shell.run("list")
    assert code == 2
    assert "BAYPLAN_CLOUD" in said


def test_targets_failed_instances_and_costs_survive_a_kill(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--data", str(tmp_path / "data.db"), "--cloud-socket", str(tmp_path / "c.sock"))
    with up(tmp_path, *options, end=signal.SIGKILL) as exported:
        for name, value in exported.items():
            monkeypatch.setenv(name, value)
        shell.until(lambda groups: groups["spare"]["instances"] == {"running": 1})
        shell.run("fail", "stock-out", "--group", "spare")
        assert shell.run("resize", "workers", "4")[0] == 0
        shell.until(lambda groups: groups["workers"]["instances"] == {"running": 4})
        assert shell.run("resize", "spare", "3")[0] == 0
        before = shell.until(lambda groups: groups["spare"]["instances"].get("failed") == 2)
    with up(tmp_path, *options) as exported:
        for name, value in exported.items():
            monkeypatch.setenv(name, value)
        assert shell.groups() == before
        assert shell.run("resize", "spare", "1")[0] == 0
        assert shell.groups()["spare"]["instances"] == {"running": 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cloud-address", "nowhere"], "--cloud-address nowhere: must be ADDRESS:PORT"),
        (["--virtual", "--for", "1s", "--cloud-socket", "c.sock"], "nothing is served"),
        (["--for", "1s", "--cloud-socket", "cluster.yaml"], "in use"),
        (["--for", "1s", "--cloud-socket", "x" * 108], "has at most 107 bytes"),
    ],
)
def test_places_that_cannot_be_served_are_refused(
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(CLUSTER)
    assert bayplan(["up", "-f", "cluster.yaml", *options]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.yaml"]


def test_what_cannot_be_served_is_said_once_and_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    command = [sys.executable, "-m", "bayplan", "up", "-f", "cluster.yaml", "--for", "1s"]
    done = subprocess.run(
        [*command, "--cloud-socket", "nowhere/c.sock"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == "error: nowhere/c.sock: cannot listen on this address\n"
