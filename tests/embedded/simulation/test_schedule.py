"""Decisions about what comes at its time are plans: nothing happens until they are carried out."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import Create, Delete, LocalAction
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import PODS
from bayplan.embedded.simulation.clusterfile import ScheduledFault, WorkloadSpec
from bayplan.embedded.simulation.schedule import FaultSchedule, WorkloadSchedule
from tests.embedded.simulation.virtual_clusters import VirtualCluster, pod, virtual_cluster

pytestmark = pytest.mark.whole


HOOKS = "validatingwebhookconfigurations.admissionregistration.k8s.io"
AWAY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "away"},
    "webhooks": [
        {
            "name": "away.example.com",
            "clientConfig": {"service": {"namespace": "default", "name": "away"}},
            "rules": [
                {
                    "operations": ["CREATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["pods"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}


async def test_a_fault_is_put_up_only_when_its_plan_is_carried_out() -> None:
    async with virtual_cluster(settle=0) as w:
        context = w.simulation.context
        planned = ScheduledFault("one", Fault(kind="quota"), 0.0, None)
        (step,) = FaultSchedule(context, (planned,)).decide(0)
        assert not context.faults.active
        assert isinstance(step, LocalAction)
        step.act()
        assert context.faults.find("quota", group="workers")


async def test_an_arrival_that_is_decided_but_not_made_is_decided_again() -> None:
    async with virtual_cluster(settle=0) as w:
        catalog = w.run.plane.backend.catalog
        spec = WorkloadSpec("workloads[0]", (pod("p"),), count=2, over=0.0)
        schedule = WorkloadSchedule(w.simulation.context, catalog, (spec,))
        assert _names(schedule) == _names(schedule) == ["p-0", "p-1"]
        _, made = schedule.decide(0)[:2]
        assert isinstance(made, LocalAction)
        made.act()
        assert _names(schedule) == ["p-1"]


async def test_what_is_refused_is_given_up_and_what_comes_with_it_is_made() -> None:
    wrong = pod("wrong")
    wrong["spec"]["containers"] = []
    async with virtual_cluster(settle=0) as w:
        await _arrive(w, wrong, pod("right"))
        await w.forward(60)
        assert [one["metadata"]["name"] for one in w.view.all(PODS)] == ["right"]


async def test_a_server_that_cannot_answer_is_asked_again() -> None:
    """As long as a webhook that must be asked is away, the server takes nothing."""
    async with virtual_cluster(settle=0) as w:
        await w.create(AWAY)
        await _arrive(w, pod("first"), pod("second"))
        await w.forward(5)
        assert not w.view.all(PODS)
        await w.simulation.sink.apply(Delete(ObjectKey(HOOKS, "", "away")))
        await w.forward(60)
        assert [one["metadata"]["name"] for one in w.view.all(PODS)] == ["first", "second"]


async def _arrive(w: VirtualCluster, *objects: dict[str, Any]) -> None:
    spec = WorkloadSpec("workloads[0]", objects, at=1.0)
    schedule = WorkloadSchedule(w.simulation.context, w.run.plane.backend.catalog, (spec,))
    w.simulation.engine.add(schedule)
    w.simulation.engine.enqueue(schedule, 0)


def _names(schedule: WorkloadSchedule) -> list[str]:
    steps = schedule.decide(0)
    return [one.object["metadata"]["name"] for one in steps if isinstance(one, Create)]
