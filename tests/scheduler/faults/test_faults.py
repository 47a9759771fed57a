"""Whatever goes wrong between the scheduler and the API server: when it is over, every pod that can
run does, once, and nothing is left of what was tried."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from bayplan.base.clock import Clock
from bayplan.client.resources import EVENTS
from bayplan.kube.pods import Pod
from tests.scheduler.faults.clusters import CPU, NODES, FaultyCluster, claim, faulty_cluster, pod
from tests.scheduler.faults.wire import Fault, How, Target

pytestmark = [pytest.mark.whole, pytest.mark.virtual]
START, END = 10.0, 250.0
BINDS = Target("POST", "/binding$", START, END)
CLAIMS = Target("PATCH", "/persistentvolumeclaims/", START, END)
ALL = Target("", "", START, END)
READS = Target("GET", "/pods/", START, END)
POD_WATCH = Target("GET", "/pods$", START, END)
CLAIM_WATCH = Target("GET", "/persistentvolumeclaims$", START, END)

FAULTS: dict[str, list[Fault]] = {
    "binds meet conflicts": [Fault(How.REFUSED, BINDS, code=409, chance=0.7)],
    "binds are too many, for a while": [Fault(How.REFUSED, BINDS, code=429, retry_after=5)],
    "binds are too many, for long": [Fault(How.REFUSED, BINDS, code=429, retry_after=100)],
    "binds are not found": [Fault(How.REFUSED, BINDS, code=404, chance=0.7)],
    "binds are forbidden": [Fault(How.REFUSED, BINDS, code=403)],
    "binds fail": [Fault(How.REFUSED, BINDS, code=500)],
    "binds are done and said to have failed": [Fault(How.FAILED, BINDS, code=500)],
    "binds are done and said to be late": [Fault(How.FAILED, BINDS, code=504, chance=0.7)],
    "binds are done and said to conflict": [Fault(How.FAILED, BINDS, code=409)],
    "binds are cut off": [Fault(How.RESET, BINDS, chance=0.8)],
    "binds are done and cut off": [Fault(How.CUT, BINDS)],
    "binds are cut off and done later": [Fault(How.LATE, BINDS)],
    "binds and looking after them fail": [Fault(How.CUT, BINDS), Fault(How.RESET, READS)],
    "binds are done later and nobody can look": [
        Fault(How.LATE, BINDS, seconds=40),
        Fault(How.UNREACHABLE, READS),
    ],
    "binds are heard of late": [Fault(How.SLOW, BINDS, seconds=50)],
    "binds are done and answered too late": [Fault(How.SLOW_ANSWER, BINDS, seconds=90)],
    "claims are written and cut off": [Fault(How.CUT, CLAIMS)],
    "claims are not written": [Fault(How.REFUSED, CLAIMS, code=409)],
    "nothing can be written": [
        Fault(How.REFUSED, Target(method, "", START, END)) for method in ("POST", "PATCH", "DELETE")
    ],
    "nobody is there": [Fault(How.UNREACHABLE, ALL)],
    "the server is not ready": [Fault(How.REFUSED, ALL, code=503, retry_after=1)],
    "every other request is cut off": [
        Fault(How.RESET, ALL, chance=0.25),
        Fault(How.CUT, ALL, chance=0.3),
    ],
    "watches are lost": [
        Fault(How.LOST, Target(start=moment, end=moment + 1)) for moment in (10.5, 11.5, 13.0, 40.0)
    ],
    "watches are lost and too old": [
        Fault(How.LOST, Target(start=10.5, end=11.0)),
        Fault(How.EXPIRED, ALL),
    ],
    "all watches lag": [Fault(How.STALLED, ALL)],
    "the watch of pods lags": [Fault(How.STALLED, POD_WATCH)],
    "the watch of claims lags": [Fault(How.STALLED, CLAIM_WATCH)],
    "the watch of pods lags and binds are done and cut off": [
        Fault(How.STALLED, POD_WATCH),
        Fault(How.CUT, BINDS),
    ],
}


async def fill(it: FaultyCluster) -> None:
    """As many pods as there is room for, to the last, a third with a claim; and one more."""
    count = NODES * CPU
    for number in range(count):
        claims = [f"c{number}"] if number % 3 == 0 else []
        await it.create(*(claim(name) for name in claims), pod(f"p{number}", "1", *claims))
    await it.create(pod("one-too-many", "1"))


@pytest.mark.parametrize("name", FAULTS)
async def test_every_pod_that_can_run_does_once(name: str) -> None:
    async with faulty_cluster() as it:
        replica = it.replica(*FAULTS[name])
        await fill(it)
        await it.forward(END)
        await it.settle()
        watching = {How.LOST, How.STALLED}
        assert replica.wire.plan.struck or watching & {one.how for one in FAULTS[name]}
        assert len(it.truth.waiting()) == 1
        assert len(it.truth.nodes()) == NODES * CPU


async def test_room_that_comes_while_nobody_can_be_heard_is_used() -> None:
    async with faulty_cluster() as it:
        it.replica(Fault(How.STALLED, ALL))
        await fill(it)
        await it.forward(100)
        await it.client.delete(Pod, "default", "p1")
        await it.settle()
        assert it.truth.waiting() == []


async def test_victims_that_cannot_be_sent_away_are_asked_again() -> None:
    async with faulty_cluster() as it:
        it.replica(Fault(How.REFUSED, Target("DELETE", "", START, END)))
        await fill(it)
        await it.forward(60)
        await it.create(_important(), pod("vip", "2", priorityClassName="important"))
        await it.forward(60)
        assert "vip" in it.truth.waiting()
        await it.forward(END)
        await it.settle()
        assert "vip" in it.truth.nodes()


async def test_victims_that_go_unheard_of_make_room_once() -> None:
    async with faulty_cluster() as it:
        it.replica(Fault(How.CUT, Target("DELETE", "", START, END)))
        await fill(it)
        await it.forward(60)
        await it.create(_important(), pod("vip", "2", priorityClassName="important"))
        await it.forward(END)
        await it.settle()
        assert "vip" in it.truth.nodes()
        assert len(it.truth.nodes()) == NODES * CPU - 1


async def test_a_pod_that_is_deleted_in_mid_bind_leaves_nothing() -> None:
    async with faulty_cluster() as it:
        it.replica(Fault(How.SLOW, BINDS, seconds=30))
        await fill(it)
        await it.forward(10)
        for number in range(4):
            await it.client.delete(Pod, "default", f"p{number}")
        await it.forward(END)
        await it.settle()
        assert it.truth.waiting() == []


async def test_a_pod_that_is_made_again_under_its_name_is_another() -> None:
    async with faulty_cluster() as it:
        it.replica(Fault(How.STALLED, Target("GET", "/pods$", START + 5, END)))
        await it.forward(10)
        await it.create(pod("again"))
        await it.client.delete(Pod, "default", "again")
        await it.create(pod("again", "2"))
        await it.settle()
        assert it.truth.waiting() == []


class JumpyClock:
    """A clock whose date is wrong by turns, in both directions."""

    def __init__(self, true: Clock) -> None:
        self._true = true
        self.monotonic = true.monotonic
        self.sleep = true.sleep

    def now(self) -> datetime:
        """The date and time, or what this clock thinks they are."""
        wrong = (0, 7200, -86400, 3600 * 24 * 400)[int(self.monotonic() / 7) % 4]
        return self._true.now() + timedelta(seconds=wrong)


async def test_a_clock_that_jumps_does_not_matter() -> None:
    async with faulty_cluster() as it:
        it.replica(clock=JumpyClock(it.lab.clock))
        await fill(it)
        await it.settle()
        assert len(it.truth.waiting()) == 1
        said = {event.reason for event in (await it.client.list(EVENTS)).items}
        assert {"Scheduled", "FailedScheduling"} <= said


async def test_a_scheduler_that_is_told_to_stop_finishes_its_binds() -> None:
    async with faulty_cluster() as it:
        replica = it.replica(Fault(How.SLOW_ANSWER, BINDS, seconds=2))
        await it.forward(10)
        await it.create(claim("never"), pod("plain"), pod("other", "1", "never"))
        await it.forward(0.5)
        await replica.stop()
        assert it.truth.nodes().keys() >= {"plain"}
        it.replica()
        await it.settle()
        assert it.truth.waiting() == []


@pytest.mark.parametrize("how", [How.SLOW, How.SLOW_ANSWER, How.CUT, How.LATE])
async def test_the_next_leader_goes_on_where_the_last_was_killed_in_mid_bind(how: How) -> None:
    async with faulty_cluster() as it:
        first = it.replica(Fault(how, BINDS, seconds=12), elected="first")
        await it.forward(5)
        second = it.replica(elected="second")
        await fill(it)
        await it.forward(5.5)
        assert first.daemon.scheduler is not None
        assert second.daemon.scheduler is None
        await first.kill()
        await it.forward(60)
        assert second.daemon.scheduler is not None
        await it.settle()
        assert len(it.truth.waiting()) == 1


async def test_a_leader_that_loses_its_lease_stops_and_the_next_takes_over() -> None:
    async with faulty_cluster() as it:
        lease = Target("", "/leases", 40.0, 100.0)
        first = it.replica(Fault(How.UNREACHABLE, lease), elected="first")
        await it.forward(20)
        second = it.replica(elected="second")
        await it.forward(60)
        assert first.task.done()
        first.wire.is_dead = True
        await fill(it)
        await it.settle()
        assert second.daemon.scheduler is not None
        assert len(it.truth.waiting()) == 1


def _important() -> dict[str, object]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": "important"}, "value": 1000}
