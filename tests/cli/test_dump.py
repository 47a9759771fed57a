"""`bayplan dump`: what it writes, where, and that a cluster and its dump answer alike."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import run
from bayplan.client import Client, connect
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from bayplan.observe.permissions import ALL_KINDS, rules_for
from tests.cli.clusters import dump, node, pod
from tests.cli.commands import command
from tests.cli.test_live import asked, cluster, grant
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]
__all__ = ["cluster"]
QUESTIONS = (
    ("explain", "--all-pending"),
    ("explain", "--all-pending", "-n", "default"),
    ("plan",),
    ("volumes",),
    ("queues",),
    ("queues", "--next"),
    ("check",),
)
CLUSTER = """
seed: 1
csiDrivers: [{name: disk.csi.example.com}]
storageClasses: [{name: disks, driver: disk.csi.example.com, default: true}]
instanceTypes: [{name: large, cpu: 4, memory: 16Gi, price: 0.8}]
nodeGroups:
  - name: workers
    instanceType: large
    count: 2
    start: 1s
    drivers: [{name: disk.csi.example.com, limit: 2, delay: 0s}]
workloads:
  - manifest:
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: ledger}
      spec:
        serviceName: ledger
        replicas: 7
        podManagementPolicy: Parallel
        selector: {matchLabels: {app: ledger}}
        template:
          metadata: {labels: {app: ledger}}
          spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
        volumeClaimTemplates:
          - metadata: {name: data}
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


async def settled(client: Client) -> None:
    """Until four pods run with their volumes and three wait for a place."""
    async with asyncio.timeout(PATIENCE):
        while True:
            pods = (await client.list(Pod)).items
            running = sum(one.status.phase == "Running" for one in pods)
            refused = sum(
                condition.reason == "Unschedulable"
                for one in pods
                for condition in one.status.conditions
            )
            if (running, refused) == (4, 3):
                return
            await asyncio.sleep(0.1)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a simulated cluster, over HTTPS, in which pods wait for all sorts."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    path = tmp_path / "kubeconfig"
    words = ["up", "-f", str(tmp_path / "cluster.yaml"), "--with", "scheduler,queues"]
    words += ["--kubeconfig", str(path)]
    async with command(tmp_path, *words, patience=PATIENCE) as running:
        await running.line()
        async with connect(path) as client:
            await settled(client)
            await client.create(
                {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "metadata": {"name": "research"},
                    "spec": {"capability": {"cpu": "1"}},
                }
            )
            gated = pod("train", cpu="2")
            gated["spec"]["containers"][0]["image"] = "i"
            gated["metadata"]["annotations"] = {
                QUEUE_SCHEDULING_GATE: "true",
                "scheduling.volcano.sh/queue-name": "research",
            }
            await client.create(gated)
        yield path


async def answer(capsys: Captured, *words: str) -> tuple[int, str]:
    """What a command says, and its exit code."""
    code = await asyncio.to_thread(run, list(words))
    return code, capsys.readouterr().out


def timeless(said: str) -> Any:
    found = json.loads(said)
    found.pop("time", None)
    return found


async def test_a_dump_of_a_live_cluster_answers_as_the_cluster_does(
    lab: Path, tmp_path: Path, capsys: Captured
) -> None:
    access, before, after = ["--kubeconfig", str(lab)], tmp_path / "before", tmp_path / "after"
    for _ in range(5):
        assert (await answer(capsys, "dump", "--to", str(before), *access))[0] == 0
        live = [await answer(capsys, *words, "-o", "json", *access) for words in QUESTIONS]
        assert (await answer(capsys, "dump", "--to", str(after), *access))[0] == 0
        if objects(before) == objects(after):  # nothing happened meanwhile
            break
    else:
        raise AssertionError("the cluster never stood still")
    dumped = [await answer(capsys, *words, "-o", "json", "-f", str(before)) for words in QUESTIONS]
    for words, (code, said), (expected, told) in zip(QUESTIONS, dumped, live, strict=True):
        assert code == expected, words
        assert timeless(said) == timeless(told), words
    first = timeless(live[0][1])["explanations"]
    assert max(name for one in first for name in one["pods"]) == "default/train"
    assert any("exceed max volume count" in one["message"] for one in first)


def objects(path: Path) -> list[Any]:
    """The objects of a dump but for leases, which are renewed all the time."""
    return [one for one in json.loads(path.read_text())["items"] if one["kind"] != "Lease"]


async def test_what_may_not_be_read_is_told_by_the_dump_as_well(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    kinds = [kind for kind in ALL_KINDS.kinds if kind.__name__ != "PersistentVolume"]
    await grant(cluster, rules_for(kinds))
    path = tmp_path / "c.json"
    assert await asked(tmp_path, "dump", "--to", str(path)) == 0
    assert "note: persistentvolumes could not be read" in capsys.readouterr().err
    await asked(tmp_path, "explain", "small", "-o", "json")
    live = capsys.readouterr().out
    run(["explain", "small", "-o", "json", "-f", str(path)])
    assert capsys.readouterr().out == live
    assert json.loads(live)["incomplete"]
    run(["dump", "-f", str(path), "--anonymise"])
    assert "reader" not in capsys.readouterr().out


async def test_nothing_is_left_of_a_dump_that_fails(
    cluster: Client, tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "to"
    folder.mkdir()
    assert await asked(tmp_path, "dump", "--to", str(folder / "c.json")) == 2
    assert "pods could not be read" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
    assert run(["dump", "-f", dump(tmp_path, node()), "--to", str(tmp_path / "no" / "c")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_a_file_is_its_owners_alone_and_gzipped_by_its_name(tmp_path: Path) -> None:
    source, path = dump(tmp_path, node(), pod()), tmp_path / "d.json.gz"
    assert run(["dump", "-f", source, "--to", str(path)]) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    found = json.loads(gzip.decompress(path.read_bytes()))
    assert [one["kind"] for one in found["items"]] == ["Node", "Pod"]
    assert run(["explain", "p", "-f", str(path)]) == 0


def test_what_is_no_plain_file_stays_what_it_is(tmp_path: Path, capsys: Captured) -> None:
    source, pipe, link = dump(tmp_path, node()), tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert run(["dump", "-f", source, "--to", str(pipe)]) == 0
    assert json.loads(os.read(reading, 1 << 16))["items"]
    os.close(reading)
    assert pipe.is_fifo()
    link.symlink_to(tmp_path / "real")
    assert run(["dump", "-f", source, "--to", str(link)]) == 0
    assert link.is_symlink()
    assert json.loads((tmp_path / "real").read_text())["items"]
    capsys.readouterr()
    assert run(["dump", "-f", source, "--to", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_only_the_kinds_asked_for_are_dumped(tmp_path: Path, capsys: Captured) -> None:
    source = dump(tmp_path, node(), pod())
    assert run(["dump", "-f", source, "--kinds", "nodes,csinodes"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in found["items"]] == ["Node"]
    assert run(["dump", "-f", source, "--kinds", "secrets"]) == 2
    assert "there is no kind 'secrets'" in capsys.readouterr().err


def test_a_salt_gives_the_same_names_again_and_no_salt_others(
    tmp_path: Path, capsys: Captured
) -> None:
    source = dump(tmp_path, node("machine"), pod("thing"))

    def told(*words: str) -> str:
        assert run(["dump", "-f", source, *words]) == 0
        return capsys.readouterr().out

    salted = told("--anonymise", "--salt", "s")
    assert "machine" not in salted
    assert salted == told("--anonymise", "--salt", "s")
    assert len({salted, told("--anonymise"), told("--anonymise")}) == 3
    assert run(["dump", "-f", source, "--salt", "s"]) == 2
