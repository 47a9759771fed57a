"""The same seed gives the same run to the byte; another seed gives another."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from bayplan.base.clock import START
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.times import timestamp
from bayplan.lab import VirtualLab
from bench.simulation import day, run_day
from tests.embedded.simulation.first_fit import FirstFit

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "stories" / "1-attach-limit-reached.yaml"


async def test_two_runs_of_one_seed_have_identical_logs() -> None:
    first = await run_day(day(nodes=8, pods=60))
    second = await run_day(day(nodes=8, pods=60))
    assert first == second
    assert first[2] == 60  # every job ended and was collected


async def test_the_log_is_what_its_digest_says() -> None:
    logs = []
    for seed in (1, 1, 2):
        out = StringIO()
        spec = parse_cluster(_CLUSTER.replace("SEED", str(seed)).encode(), "c.yaml", Path())
        run = VirtualLab(spec, log=out)
        run.simulation.engine.add(FirstFit(run.simulation.view))
        async with run:
            await run.run(3600)
            assert run.log.lines == len(out.getvalue().splitlines())
        logs.append(out.getvalue())
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


@pytest.mark.parametrize("place", [True, False])
def test_runs_in_different_processes_are_the_same(place: bool, tmp_path: Path) -> None:
    """String hashes differ from process to process, so nothing may follow the order of a set."""
    logs = []
    for hash_seed in ("1", "2"):
        log = tmp_path / f"log-{hash_seed}"
        command = [sys.executable, "-m", "bayplan", "up", "-f", str(EXAMPLE), "--virtual"]
        command += ["--for", "20m", "--log", str(log), *(["--with", "scheduler"] if place else [])]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        logs.append(log.read_bytes())
    assert logs[0] == logs[1]
    assert logs[0].count(b"\n") > 100


async def test_the_log_says_what_happened_when() -> None:
    out = StringIO()
    spec = parse_cluster(_CLUSTER.replace("SEED", "1").encode(), "c.yaml", Path())
    lab = VirtualLab(spec, log=out)
    lab.simulation.engine.add(FirstFit(lab.simulation.view))
    async with lab:
        await lab.run(1200)
    said = [line.rpartition(" [")[0] for line in out.getvalue().splitlines()]
    assert "0d 00:00:00.000 created namespaces default: phase Active" in said
    assert any(
        re.fullmatch(r"0d 00:00:\d\d.\d{3} changed nodes g-1: .*Ready True", one) for one in said
    )
    assert any("pods default/p-0: node g-1, PodScheduled True" in one for one in said)
    silent = re.compile(r"0d 00:1.* changed nodes g-1: .*Ready Unknown.*")
    assert any(silent.fullmatch(one) for one in said)


async def test_a_run_keeps_its_state_and_the_next_goes_on_where_and_when_it_ended(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data.db"
    spec = parse_cluster(_CLUSTER.replace("SEED", "1").encode(), "c.yaml", Path())
    async with VirtualLab(spec, data=data) as first:
        await first.run(3600)
        nodes = [(one.key, one.uid) for one in first.plane.store.list("nodes")]
    async with VirtualLab(spec, data=data) as second:
        assert second.clock.now() == START + timedelta(hours=1)
        assert [(one.key, one.uid) for one in second.plane.store.list("nodes")] == nodes
        await second.run(3600)
        assert len(nodes) == len(second.plane.store.list("nodes")) == 3
        assert second.simulation.engine.failures == 0


_JOBS = """
seed: 1
instanceTypes: [{name: a, cpu: 64, memory: 256Gi}]
nodeGroups: [{name: g, instanceType: a, count: 3}]
workloads:
  - arrivals: {count: 30, over: 30m}
    manifest:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: work}
      spec:
        ttlSecondsAfterFinished: 60
        template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}
"""


async def test_a_run_that_goes_on_makes_no_uid_that_is_there_already(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    spec = parse_cluster(_JOBS.encode(), "c.yaml", Path())
    made: list[str] = []
    for _ in range(3):
        lab = VirtualLab(spec, data=data)
        lab.plane.store.listeners.append(
            lambda one: made.append(one.entry.uid) if one.previous is None else None
        )
        lab.simulation.engine.add(FirstFit(lab.simulation.view))
        async with lab:
            await lab.run(3600)
            nodes = {one.uid for one in lab.plane.store.list("nodes")}
            assert len(nodes) == 3
    assert len(made) == len(set(made))


async def test_a_run_that_was_killed_left_its_time_behind(tmp_path: Path) -> None:
    data, copy = tmp_path / "data.db", tmp_path / "copy.db"
    spec = parse_cluster(_JOBS.encode(), "c.yaml", Path())
    async with VirtualLab(spec, data=data) as lab:
        await lab.run(3600)
        _copy(data, copy)  # as a kill leaves it
        newest = max(one.object()["metadata"]["creationTimestamp"] for one in _all(lab))
    async with VirtualLab(spec, data=copy) as lab:
        assert timestamp(lab.clock.now()) >= newest > timestamp(START)


def _copy(data: Path, copy: Path) -> None:
    for left in data.parent.glob(f"{data.name}*"):
        shutil.copy(left, copy.with_name(left.name.replace(data.name, copy.name)))


def _all(lab: VirtualLab) -> list[StoreEntry]:
    return list(lab.plane.store.everything())


async def test_a_task_that_sleeps_on_the_same_clock_is_woken_in_its_turn() -> None:
    spec = parse_cluster(_CLUSTER.replace("SEED", "1").encode(), "c.yaml", Path())
    async with VirtualLab(spec) as run:
        cloud = run.simulation.cloud

        async def buy_every_minute() -> None:
            for _ in range(3):
                await run.clock.sleep(60)
                cloud.increase("g", 1)

        buying = asyncio.create_task(buy_every_minute())
        await run.run(3600)
        await buying
        start = run.clock.now().timestamp() - 3600
        bought = [round(one.launched - start) for one in cloud.instances_of("g")]
        assert bought == [0, 0, 0, 60, 120, 180]
        assert len(run.plane.store.list("nodes")) == 6


async def test_a_task_that_waits_for_changes_gets_its_turns() -> None:
    spec = parse_cluster(_CLUSTER.replace("SEED", "1").encode(), "c.yaml", Path())
    async with VirtualLab(spec) as run:
        cache = run.plane.store.watch_cache("nodes")
        seen: list[float] = []

        async def watch() -> None:
            while True:
                await cache.wait(cache.end, 1000)
                seen.append(run.simulation.now())

        watching = asyncio.create_task(watch())
        await run.run(60)
        watching.cancel()
        first = min(seen)
        assert 24 <= first <= 36  # when the first node registers, not when the run is over


_CLUSTER = """
seed: SEED
instanceTypes: [{name: a}]
nodeGroups: [{name: g, instanceType: a, count: 3}]
faults: [{kind: node-flaps, node: g-1, at: 10m}]
workloads:
  - arrivals: {count: 20, over: 30m}
    manifest:
      apiVersion: v1
      kind: Pod
      metadata: {name: p}
      spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""
