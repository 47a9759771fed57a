"""Runs in processes: the same whoever makes them; one that dies is told, and the others go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from bayplan.lab.simulation.pool import run_all, run_simulation
from bayplan.lab.simulation.runspec import RunResults, RunSpec, encode
from tests.lab.simulation.runs import inputs, run_spec, variant

pytestmark = pytest.mark.whole


def test_processes_give_the_same_bytes_as_this_one(tmp_path: Path) -> None:
    orders = inputs(variant(), seeds=2, seconds=300.0).runs()
    assert run_all(orders, tmp_path, "1", 2, lambda *_: None) == []
    results = RunResults(tmp_path, "1")
    for one in orders:
        assert results.path(one).read_bytes() == encode(run_simulation(one))


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    one = run_spec(variant(), seconds=60.0)
    kept = run_simulation(one)
    RunResults(tmp_path, "1").store(one, msgspec.structs.replace(kept, digest="kept"))
    told: list[tuple[int, float]] = []
    run_all([one], tmp_path, "1", 1, lambda number, share: told.append((number, share)))
    assert told == [(0, 1.0)]
    found = RunResults(tmp_path, "1").find(one)
    assert found is not None
    assert found.digest == "kept"
    assert RunResults(tmp_path, "2").find(one) is None


def test_one_that_dies_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    orders = inputs(variant(), seeds=2, seconds=300.0).runs()

    def kill_first(number: int, share: float) -> None:
        if number == 0 and 0.3 < share < 1:
            _kill_child(orders[0])

    failures = run_all(orders, tmp_path, "1", 1, kill_first)
    assert [(one.run.seed, one.reason) for one in failures] == [
        (1, "its process ended without a result (killed by signal 9)")
    ]
    assert RunResults(tmp_path, "1").find(orders[1]) is not None


def _kill_child(one: RunSpec) -> None:
    from multiprocessing import active_children  # noqa: PLC0415 - only here

    for child in active_children():
        if child.name == one.title and child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)


def test_one_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(variant(), cluster={"nodeGroups": [{"name": "x"}]})
    (failure,) = run_all([run_spec(broken)], tmp_path, "1", 1, lambda *_: None)
    assert "cluster.yaml: nodeGroups[0]" in failure.reason
