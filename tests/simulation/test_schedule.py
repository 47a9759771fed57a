"""Decisions about what comes at its time are plans: nothing happens until they are carried out."""

from __future__ import annotations

from bayplan.embedded.control.controller import Create, Do
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.simulation.clusterfile import ScheduledFault, WorkloadSpec
from bayplan.embedded.simulation.schedule import FaultSchedule, WorkloadSchedule
from tests.simulation.worlds import pod, world


async def test_a_fault_is_put_up_only_when_its_plan_is_carried_out() -> None:
    async with world(settle=0) as w:
        stage = w.simulation.stage
        planned = ScheduledFault("one", Fault(kind="quota"), 0.0, None)
        (step,) = FaultSchedule(stage, (planned,)).decide(0)
        assert not stage.faults.active
        assert isinstance(step, Do)
        step.act()
        assert stage.faults.find("quota", group="workers")


async def test_an_arrival_that_is_decided_but_not_made_is_decided_again() -> None:
    async with world(settle=0) as w:
        catalog = w.run.plane.backend.catalog
        spec = WorkloadSpec("workloads[0]", (pod("p"),), count=2, over=0.0)
        schedule = WorkloadSchedule(w.simulation.stage, catalog, (spec,))
        assert _names(schedule) == _names(schedule) == ["p-0", "p-1"]
        first = schedule.decide(0)[0]
        assert isinstance(first, Do)
        first.act()
        assert _names(schedule) == ["p-1"]


def _names(schedule: WorkloadSchedule) -> list[str]:
    steps = schedule.decide(0)
    return [one.object["metadata"]["name"] for one in steps if isinstance(one, Create)]
