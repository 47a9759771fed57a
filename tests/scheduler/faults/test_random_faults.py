"""Over random schedules of pods and faults: nobody is bound twice or lost, no room is taken twice,
nothing is left over."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bayplan.client import Untyped, merge
from bayplan.client.errors import NotFoundError
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod
from bayplan.lab import run_virtually
from bayplan.observe.kinds import OBSERVED
from bayplan.scheduler.attempt import Placed, attempt
from bayplan.scheduler.config import default_settings
from tests.scheduler.faults.clusters import FaultyCluster, claim, faulty_cluster, pod
from tests.scheduler.faults.schedules import LAST, LEASE, Arrival, Schedule, schedules

pytestmark = pytest.mark.whole


OPEN = merge({"spec": {"schedulingGates": None}})


@given(schedules)
@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
def test_nobody_is_bound_twice_or_lost(schedule: Schedule) -> None:
    run_virtually(check(schedule))


async def check(schedule: Schedule) -> None:
    """Run a schedule, and see that all is well in the end."""
    async with faulty_cluster() as it:
        await it.create(_class("low", -10), _class("high", 10))
        it.replica(*schedule.faults)
        for moment, act in sorted(_acts(schedule), key=lambda one: one[0]):
            await it.forward(max(0.0, moment - it.lab.clock.monotonic()))
            await _carry_out(it, act, schedule)
        await it.forward(LAST)
        await it.settle()
        assert await lost(it) == []


Act = tuple[str, Arrival | None]


def _acts(schedule: Schedule) -> list[tuple[float, Act]]:
    acts: list[tuple[float, Act]] = []
    for one in schedule.arrivals:
        acts.append((one.at, ("create", one)))
        if one.ungated_at is not None:
            acts.append((max(one.at, one.ungated_at) + 0.1, ("ungate", one)))
        if one.deleted_at is not None:
            acts.append((max(one.at, one.deleted_at) + 0.2, ("delete", one)))
    if schedule.killed_at is not None:
        acts.append((schedule.killed_at, ("kill", None)))
        acts.append((schedule.killed_at + LEASE, ("replace", None)))
    return acts


async def _carry_out(it: FaultyCluster, act: Act, schedule: Schedule) -> None:
    match act:
        case ("create", Arrival() as one):
            await it.create(*_objects(one))
        case ("ungate", Arrival() as one):
            with suppress(NotFoundError):
                await it.client.patch(Pod, "default", one.name, change=OPEN)
        case ("delete", Arrival() as one):
            with suppress(NotFoundError):
                await it.client.delete(Pod, "default", one.name)
        case ("kill", _):
            await it.replicas[0].kill()
        case _:
            it.replica(*schedule.faults)


def _objects(one: Arrival) -> list[Untyped]:
    claims = [f"{one.name}-{number}" for number in range(one.claims)]
    spec: Untyped = {"priorityClassName": one.priority} if one.priority else {}
    if one.ungated_at is not None:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    return [*map(claim, claims), pod(one.name, one.cpu, *claims, **spec)]


async def lost(it: FaultyCluster) -> list[str]:
    """The pods that wait though, by what the API server has, they need not."""
    objects = [one for kind in OBSERVED for one in (await it.client.list(kind)).items]
    snapshot = Snapshot(objects)
    (profile,) = default_settings(["bayplan"]).profiles
    waiting = [
        one
        for one in objects
        if isinstance(one, Pod) and not one.spec.node_name and not one.spec.scheduling_gates
    ]
    tries = [(one.name, attempt(snapshot, one, profile)) for one in waiting]
    return [
        name
        for name, outcome in tries
        if isinstance(outcome, Placed) or outcome.preemption is not None
    ]


def _class(name: str, value: int) -> Untyped:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}
