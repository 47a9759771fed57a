"""Whatever goes wrong between the scheduler and the API server: no quota is leaked or exceeded, no
gang is split, no removal of a gate is lost."""

from __future__ import annotations

import pytest

from bayplan.client import deletion
from bayplan.kube.pods import Pod
from bayplan.queues import Ledger
from tests.scheduler.batch import objects
from tests.scheduler.batch.schedules import BindJob, QueueMade, Schedule
from tests.scheduler.batch.test_random_queues import (
    RandomQueuesRun,
    ledger_of,
    play,
    random_queues_run,
    split,
    starved,
)
from tests.scheduler.faults.clusters import check_at_rest
from tests.scheduler.faults.wire import Fault, How, Target

pytestmark = [pytest.mark.whole, pytest.mark.virtual]
START, END = 0.0, 180.0
UNGATES = Target("PATCH", "/pods/[^/]+$", START, END)
BINDS = Target("POST", "/binding$", START, END)
ONE_POD = Target("", "/pods/[^/]+(/binding)?$", START, 90.0)
STATUSES = Target("PATCH", "/status$", START, END)
GROUPS = Target("", "/podgroups", START, END)
ALL = Target("", "", START, END)
POD_WATCH = Target("GET", "/pods$", START, END)
QUEUE_WATCH = Target("GET", "/queues$", START, END)

FAULTS: dict[str, list[Fault]] = {
    "removals of gates conflict": [Fault(How.REFUSED, UNGATES, code=409, chance=0.7)],
    "removals of gates are too many": [Fault(How.REFUSED, UNGATES, code=429, retry_after=5)],
    "removals of gates fail": [Fault(How.REFUSED, UNGATES, code=500)],
    "removals of gates are forbidden": [Fault(How.REFUSED, UNGATES, code=403)],
    "removals of gates are invalid": [Fault(How.REFUSED, UNGATES, code=422)],
    "removals of gates are done and said to have failed": [Fault(How.FAILED, UNGATES, code=500)],
    "removals of gates are done and cut off": [Fault(How.CUT, UNGATES)],
    "removals of gates are cut off and done later": [Fault(How.LATE, UNGATES)],
    "removals of gates are slow": [Fault(How.SLOW, UNGATES, seconds=40)],
    "some gates can be removed and some not": [Fault(How.REFUSED, UNGATES, code=500, chance=0.5)],
    "binds conflict": [Fault(How.REFUSED, BINDS, code=409, chance=0.7)],
    "binds are too many": [Fault(How.REFUSED, BINDS, code=429, retry_after=5)],
    "binds fail": [Fault(How.REFUSED, BINDS, code=500)],
    "binds are done and cut off": [Fault(How.CUT, BINDS)],
    "pods are said to be gone, and are not": [Fault(How.REFUSED, ONE_POD, code=404)],
    "statuses are not written": [Fault(How.REFUSED, STATUSES)],
    "groups can be neither read nor written": [Fault(How.REFUSED, GROUPS, code=503)],
    "nobody is there": [Fault(How.UNREACHABLE, ALL)],
    "every other request is cut off": [
        Fault(How.RESET, ALL, chance=0.25),
        Fault(How.CUT, ALL, chance=0.3),
    ],
    "watches are lost": [
        Fault(How.LOST, Target(start=moment, end=moment + 1)) for moment in (2.0, 4.0, 8.0, 30.0)
    ],
    "watches are lost and too old": [
        Fault(How.LOST, Target(start=3.0, end=3.5)),
        Fault(How.EXPIRED, ALL),
    ],
    "the watch of pods lags": [Fault(How.STALLED, POD_WATCH)],
    "the watch of queues lags": [Fault(How.STALLED, QUEUE_WATCH)],
}
QUEUES = (QueueMade("upper", "", 6, "", 0), QueueMade("a", "upper", 4, "", 0),
          QueueMade("b", "upper", None, "", 0))  # fmt: skip
JOBS = (
    BindJob("first", "a", 0.5, 2, 1, 1, "", "gated", 100.0, True),
    BindJob("gang", "a", 1.0, 3, 3, 1, "", "gated", None, True),
    BindJob("beside", "b", 1.5, 2, 2, 2, "", "gated", 150.0, False),
    BindJob("asked", "b", 2.0, 1, 1, 1, "", "asked", None, True),
)


def schedule(*faults: Fault) -> Schedule:
    return Schedule(QUEUES, JOBS, faults, None, 1)


async def at_rest(it: RandomQueuesRun) -> Ledger:
    """What the API server has in the end, once nothing is wrong with it."""
    ledger = await ledger_of(it.client)
    assert it.truth.wrongs == []
    assert (split(ledger), starved(ledger)) == ([], [])
    for one in it.replicas:
        if not one.wire.is_dead:
            check_at_rest(one)
            assert one.daemon.scheduler is not None
            assert len(one.daemon.scheduler.batch.gate_removal) == 0
    return ledger


@pytest.mark.parametrize("name", FAULTS)
async def test_everybody_runs_whom_quota_lets_in(name: str) -> None:
    made = schedule(*FAULTS[name])
    async with random_queues_run(made) as it:
        await play(it, made)
        ledger = await at_rest(it)
        assert all(one.node for one in ledger.members.values())
        watching = {How.LOST, How.STALLED}
        struck = it.replicas[0].wire.plan.struck
        assert struck or watching & {one.how for one in FAULTS[name]}


async def test_a_removal_of_a_gate_hits_no_other_pod_of_that_name() -> None:
    made = Schedule(
        (QueueMade("a", "", 1, "", 0),), (), (Fault(How.SLOW, UNGATES, seconds=10),), None, 1
    )
    async with random_queues_run(made) as it:
        it.replica(made)
        await it.client.create(objects.queue("closed", {"cpu": "0"}))
        await it.client.create(objects.pod("default", "p", queue="a"))
        await it.lab.forward(5)  # its gate is being removed, slowly
        await it.client.delete(Pod, "default", "p", options=deletion(grace=0))
        await it.client.create(objects.pod("default", "p", queue="unknown"))
        await it.lab.forward(60)
        assert (await it.client.get(Pod, "default", "p")).spec.scheduling_gates


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.5, 1.5, 3.0])
async def test_a_leader_that_is_killed_between_ungating_and_binding_leaves_no_gang_split(
    seconds: float,
) -> None:
    slow = (Fault(How.SLOW, UNGATES, seconds=0.4, chance=0.5), Fault(How.SLOW, BINDS, seconds=2.0))
    made = Schedule(QUEUES, JOBS, slow, 1.0 + seconds, 2)
    async with random_queues_run(made) as it:
        await play(it, made)
        ledger = await at_rest(it)
        assert all(one.node for one in ledger.members.values())
