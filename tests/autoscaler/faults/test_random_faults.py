"""Random faults of the cloud, faults of machines and restarts of the autoscaler, in virtual time.

However they come together: no group is ever asked above its maximum, nothing is bought twice for
the same pods, and once all is well everything runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.embedded.control.faults import Fault, FaultKind
from bayplan.lab import run_virtually
from bayplan.nodegroups import Provider
from tests.autoscaler.faults.faulty_provider import FaultPeriod, FaultyProvider, ProviderFault
from tests.autoscaler.faults.test_faults import SURE, spec
from tests.autoscaler.running_autoscaler import (
    RunningCluster,
    all_run,
    ended,
    led,
    virtual_running_cluster,
)

pytestmark = pytest.mark.whole


LAST = 900
"""When the last fault is over."""
HARMLESS: tuple[FaultKind, ...] = ("stock-out", "quota", "slow-start")
"""What never makes a node necessary that is bought already."""
HARMFUL: tuple[FaultKind, ...] = (*HARMLESS, "never-registers", "no-driver")
MOODS = (ProviderFault.REFUSES, ProviderFault.LOSES, ProviderFault.HANGS)
QUESTIONS = ("", "refresh", "groups", "instances", "target_size", "increase", "delete_nodes")
moments = st.integers(0, LAST)


@dataclass(frozen=True, slots=True)
class MachineFault:
    """A machine fault, between two moments."""

    kind: FaultKind
    start: int
    end: int
    group: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that goes wrong."""

    spells: tuple[FaultPeriod, ...]
    troubles: tuple[MachineFault, ...]
    restarts: tuple[int, ...]
    second: bool


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int]:
    one, other = draw(moments), draw(moments)
    return min(one, other), max(one, other) + 1


@st.composite
def schedules(draw: st.DrawFn, kinds: tuple[FaultKind, ...]) -> Schedule:
    """Anything that can go wrong, of these kinds."""
    groups = st.sampled_from(["", "first", "second"])
    spells = []
    for _ in range(draw(st.integers(0, 3))):
        start, end = draw(spans())
        mood, asked = draw(st.sampled_from(MOODS)), draw(st.sampled_from(QUESTIONS))
        chance = draw(st.sampled_from([0.3, 1.0]))
        spells.append(FaultPeriod(mood, asked, start, end, chance, draw(groups)))
    troubles = []
    for _ in range(draw(st.integers(0, 2))):
        start, end = draw(spans())
        troubles.append(MachineFault(draw(st.sampled_from(kinds)), start, end, draw(groups)))
    restarts = draw(st.lists(moments, max_size=3).map(sorted))
    return Schedule(tuple(spells), tuple(troubles), tuple(restarts), draw(st.booleans()))


@dataclass(slots=True)
class CloudCalls:
    """The calls that the cloud received."""

    above: list[str] = field(default_factory=list)
    """Purchases that would have taken a group above its maximum."""


class WatchedCloud(FaultyProvider):
    """A faulty cloud that records scale-ups out of bounds."""

    seen: CloudCalls

    async def increase(self, group: str, count: int) -> None:
        size = await self._inner.target_size(group)
        most = {one.id: one.max_size for one in await self._inner.groups()}[group]
        if size + count > most:
            self.seen.above.append(f"{group}: {size} + {count} > {most}")
        await super().increase(group, count)


async def play(schedule: Schedule, seen: CloudCalls) -> int:
    """Let it all happen; how many instances were bought that could be had."""

    def wrap(lab: object, provider: Provider) -> Provider:
        cloud = WatchedCloud(provider, lab.clock, schedule.spells, Random(7))  # type: ignore[attr-defined]
        cloud.seen = seen
        return cloud

    async with virtual_running_cluster(
        spec(second=schedule.second), SURE, wrap=wrap, leads=False
    ) as cluster:
        failed: set[str] = set()
        cloud = cluster.lab.simulation.cloud
        cloud.listeners.append(
            lambda name: failed.add(name) if _has_failed(cluster, name) else None
        )
        task = led(cluster, cluster.lab.client())
        for moment, what in _events(schedule):
            await cluster.lab.run(moment)
            if isinstance(what, MachineFault):
                _strike(cluster, what, moment)
            else:
                await ended(task)
                task = led(cluster, cluster.lab.client())
        await cluster.lab.run(LAST + 2)
        await cluster.until(all_run(20), within=4 * 3600)
        await ended(task)
        return len(cluster.created_instances - failed)


def _events(schedule: Schedule) -> list[tuple[int, MachineFault | None]]:
    found: list[tuple[int, MachineFault | None]] = [(moment, None) for moment in schedule.restarts]
    for one in schedule.troubles:
        found += [(one.start, one), (one.end, one)]
    return sorted(found, key=lambda event: event[0])


def _strike(cluster: RunningCluster, trouble: MachineFault, moment: int) -> None:
    faults, name = cluster.lab.simulation.faults, repr(trouble)
    if moment == trouble.start:
        faults.inject(name, Fault(kind=trouble.kind, group=trouble.group))
    else:
        faults.clear(name)


def _has_failed(cluster: RunningCluster, name: str) -> bool:
    one = cluster.lab.simulation.cloud.instances.get(name)
    return one is not None and one.state == "failed"


SILENT_AFTER_A_RESTART = Schedule(
    spells=(FaultPeriod(ProviderFault.LOSES, "instances", 21, 181, 0.3, "second"),),
    troubles=(MachineFault("slow-start", 60, 72, ""),),
    restarts=(53,),
    second=True,
)
"""A group first answers when its nodes are registered already, but not complete."""


@settings(max_examples=10)
@example(SILENT_AFTER_A_RESTART)
@given(schedules(HARMLESS))
def test_nothing_is_ever_bought_twice_for_the_same_pods(schedule: Schedule) -> None:
    seen = CloudCalls()
    assert run_virtually(play(schedule, seen)) == 3
    assert not seen.above


@settings(max_examples=10)
@given(schedules(HARMFUL))
def test_everything_runs_in_the_end_and_no_maximum_is_ever_passed(schedule: Schedule) -> None:
    seen = CloudCalls()
    run_virtually(play(schedule, seen))
    assert not seen.above
