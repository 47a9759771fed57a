"""A run measured from within is the same run, and its figures are what the cluster says."""

from __future__ import annotations

import pytest

from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.lab import VirtualLab, run_virtually
from bayplan.lab.daemons import LabDaemons, parse_daemon_names, prepare_daemons
from bayplan.lab.measurement import Grid, Meter
from bayplan.lab.simulation.pool import PendingCauses, run_simulation, spec_of
from tests.lab.simulation.runs import DISK, FULL, OFF, RUNS_OF_FULL, run_of_full, run_spec, variant

pytestmark = pytest.mark.whole


@RUNS_OF_FULL
def test_measuring_changes_nothing_in_a_run() -> None:
    assert run_of_full(OFF).digest == run_virtually(_digest_of_unmeasured(OFF))


async def _digest_of_unmeasured(gates: str) -> str:
    spec = spec_of(variant(FULL.read_bytes()))
    daemons = LabDaemons(
        parse_daemon_names("scheduler,autoscaler"), Profile(gates=FeatureGates.parse(gates))
    )
    prepared = prepare_daemons(daemons, spec, lambda: lab.simulation.provider)
    lab = VirtualLab(prepared.spec, prepared.daemons)
    async with lab:
        await lab.run(1800.0)
        return lab.log.digest


@pytest.mark.virtual
async def test_cost_is_what_the_cloud_says_was_spent_failed_instances_and_all() -> None:
    one = variant()
    prepared = prepare_daemons(
        LabDaemons(parse_daemon_names("scheduler,autoscaler")),
        spec_of(one),
        lambda: lab.simulation.provider,
    )
    lab = VirtualLab(prepared.spec, prepared.daemons)
    meter = Meter(lab.simulation, Grid.over(1800.0), PendingCauses(prepared))
    lab.plane.store.listeners.append(meter.observe)
    async with lab:
        await lab.run(1800.0)
        found = meter.result(lab.log.digest)
        assert found.figures["cost"] == pytest.approx(lab.simulation.cloud.spent(), abs=1e-3)
        ready = sum(one.startswith("nodes/") for one in found.series)
        assert ready
    assert found.figures["nodesFailed"]
    assert found.figures["podsCreated"] == 40


@RUNS_OF_FULL
def test_attach_limit_reached_is_told_as_it_is() -> None:
    """Three nodes are added at once, for pods that wait for volumes; off, one after another."""
    on, off = run_of_full(), run_of_full(OFF)
    added = [(one.count, one.reason) for one in on.events if one.time > 0]
    assert added == [(3, f"pods waiting: 20 for volumes of {DISK}")]
    assert [one.count for one in off.events if one.time > 0] == [1, 1, 1]
    for one in (on, off):
        assert one.figures["podsRan"] == 36
        assert one.figures["nodesAdded"] == 3
        assert one.series[f"volumes/{DISK}"][-1] == 36
        assert one.series[f"limits/{DISK}"][-1] == 40
    assert (on.figures["p90"] or 0) < 70 < (off.figures["p90"] or 0)
    assert on.figures["podsStuck"] == 0
    assert (off.figures["podsStuck"] or 0) >= 20, "as the demo counts them"


def test_progress_goes_from_nothing_to_the_end() -> None:
    told: list[float] = []
    run_simulation(run_spec(variant(), seconds=600.0), told.append)
    assert told == sorted(told)
    assert told[0] == 0
    assert 0.9 < told[-1] <= 1


AT_ONCE = b"""
seed: 3
instanceTypes: [{name: small, cpu: 4, memory: 8Gi, price: 1.0}]
nodeGroups: [{name: workers, instanceType: small, count: 1, max: 3}]
workloads:
  - manifest:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: work}
      spec:
        parallelism: 6
        completions: 6
        template:
          spec:
            restartPolicy: Never
            containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]
"""


def test_nodes_that_are_added_in_the_first_moment_were_not_there_from_the_start() -> None:
    found = run_simulation(run_spec(variant(AT_ONCE), seconds=300.0))
    told = [(one.what, one.count, one.reason) for one in found.events]
    assert told == [
        ("added", 1, "from the start"),
        ("added", 2, "pods waiting: 6 for nodes"),
    ]
    assert found.figures["nodesAdded"] == 2
