"""Whatever happens to a cluster, it ends up as its objects say, and no limit is ever passed."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import (
    ATTACHMENTS,
    CLAIMS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    STATEFUL_SETS,
)
from bayplan.lab import run_virtually
from bayplan.nodegroups import NodeGroupError
from tests.embedded.simulation.virtual_clusters import (
    CLUSTER,
    VirtualCluster,
    claim,
    pod,
    virtual_cluster,
    workload,
)

pytestmark = pytest.mark.whole


few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
REAL_LIMIT = 3
LIMITED = CLUSTER.replace("limit: 8", f"limit: 20\n        realLimit: {REAL_LIMIT}").replace(
    "zones: [zone-a, zone-b]", "zones: [zone-a]"
)
FAULTS = st.sampled_from(["node-dies", "attach-fails", "detach-sticks", "provision-fails"])

Move = tuple[str, int]
moves = st.lists(
    st.tuples(st.sampled_from(["scale", "kill", "wait", "image"]), st.integers(0, 6)), max_size=12
)


@few
@given(moves)
def test_a_deployment_ends_with_the_wanted_pods_of_the_newest_template(steps: list[Move]) -> None:
    async def story() -> None:
        async with virtual_cluster(placing=True) as w:
            await w.create(workload("Deployment", "web", replicas=3))
            for move, number in steps:
                await _disturb(w, DEPLOYMENTS, "web", move, number)
            await w.forward(300)
            owner = w.get(DEPLOYMENTS, "web")
            images = {w.get(PODS, k.name)["spec"]["containers"][0]["image"] for k in w.view.pods}
            wanted = owner["spec"]["replicas"]
            assert len(w.view.pods) == wanted
            assert all(one.is_ready for one in w.view.pods.values())
            assert images <= {owner["spec"]["template"]["spec"]["containers"][0]["image"]}
            assert owner["status"]["availableReplicas"] == wanted

    run_virtually(story())


@few
@given(moves, st.sampled_from(["OrderedReady", "Parallel"]))
def test_a_stateful_set_ends_with_the_first_numbers_each_with_its_claim(
    steps: list[Move], policy: str
) -> None:
    async def story() -> None:
        async with virtual_cluster(placing=True) as w:
            template = {"metadata": {"name": "data"}, "spec": claim("x")["spec"]}
            await w.create(
                workload(
                    "StatefulSet",
                    "db",
                    replicas=3,
                    serviceName="db",
                    podManagementPolicy=policy,
                    volumeClaimTemplates=[template],
                )
            )
            for move, number in steps:
                await _disturb(w, STATEFUL_SETS, "db", move, number)
            await w.forward(900)
            wanted = w.get(STATEFUL_SETS, "db")["spec"]["replicas"]
            assert sorted(key.name for key in w.view.pods) == [f"db-{n}" for n in range(wanted)]
            assert all(one.is_ready for one in w.view.pods.values())
            assert all(w.claim_phase(f"data-db-{n}") == "Bound" for n in range(wanted))

    run_virtually(story())


@few
@given(st.integers(1, 8), st.integers(1, 4), st.lists(st.integers(0, 7), max_size=6))
def test_a_job_completes_however_many_of_its_pods_are_killed(
    completions: int, parallelism: int, kills: list[int]
) -> None:
    async def story() -> None:
        async with virtual_cluster(placing=True) as w:
            spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            sizes = {"completions": completions, "parallelism": parallelism}
            await w.create(workload("Job", "sum", template=spec, **sizes))
            for kill in kills:
                await w.forward(10)
                assert sum(one.is_active for one in w.view.pods.values()) <= parallelism
                await _kill(w, kill, only=lambda one: one.is_active)
            await w.forward(1500)
            status = w.get(JOBS, "sum")["status"]
            assert status["succeeded"] == completions
            assert status["active"] == 0

    run_virtually(story())


@few
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2)), max_size=15),
    st.lists(st.tuples(FAULTS, st.integers(0, 60)), max_size=3),
)
def test_no_machine_ever_attaches_more_than_it_can_and_all_are_let_go_in_the_end(
    placements: list[tuple[int, int]], troubles: list[tuple[Any, int]]
) -> None:
    async def story() -> None:
        async with virtual_cluster(LIMITED) as w:
            for number, (kind, wait) in enumerate(troubles):
                w.simulation.faults.inject(f"trouble-{number}", Fault(kind=kind))
                await w.forward(wait)
            for number, (name, node) in enumerate(placements):
                await w.create(pod(f"p{number}", claims=(f"c{name}",)))
                if w.get(CLAIMS, f"c{name}") is None:
                    await w.create(claim(f"c{name}"))
                await w.bind(f"p{number}", f"workers-{node}")
                await w.forward(number)
                _check_limits(w)
            for number in range(len(troubles)):
                w.clear(f"trouble-{number}")
            await w.forward(600)
            _check_limits(w)
            for key in list(w.view.pods):
                await w.delete(PODS, key.name)
            await w.forward(600)
            assert not w.view.pods
            assert w.view.all(ATTACHMENTS) == []

    run_virtually(story())


@few
@given(st.lists(st.tuples(st.sampled_from(["buy", "give", "less", "wait"]), st.integers(0, 6))))
def test_a_group_has_what_it_is_meant_to_have(steps: list[Move]) -> None:
    async def story() -> None:
        async with virtual_cluster(CLUSTER.replace("max: 5", "max: 5\n    min: 1"), settle=0) as w:
            cloud = w.simulation.cloud
            for move, number in steps:
                with contextlib.suppress(NodeGroupError):
                    await _trade(w, move, number)
                assert cloud.target("workers") == len(cloud.instances_of("workers"))
                assert 1 <= cloud.target("workers") <= 5
            await w.forward(300)
            names = sorted(one["metadata"]["name"] for one in w.view.all(NODES))
            assert names == sorted(cloud.instances)

    run_virtually(story())


async def _trade(w: VirtualCluster, move: str, number: int) -> None:
    cloud = w.simulation.cloud
    if move == "buy":
        cloud.increase("workers", number)
    elif move == "give":
        cloud.delete([f"workers-{number}"])
    elif move == "less":
        cloud.decrease_target("workers", number)
    else:
        await w.forward(number * 10)


async def _disturb(w: VirtualCluster, storage: str, name: str, move: str, number: int) -> None:
    moves: dict[str, Callable[[], Awaitable[None]]] = {
        "scale": lambda: w.edit(storage, name, lambda obj: _scaled(obj, number)),
        "image": lambda: w.edit(storage, name, lambda obj: _imaged(obj, number)),
        "kill": lambda: _kill(w, number, only=lambda _: True),
        "wait": lambda: w.forward(number),
    }
    await moves[move]()
    await w.forward(0.5)


async def _kill(w: VirtualCluster, number: int, only: Callable[[Any], bool]) -> None:
    names = sorted(key.name for key, one in w.view.pods.items() if only(one))
    if names:
        await w.delete(PODS, names[number % len(names)])


def _check_limits(w: VirtualCluster) -> None:
    attached = Counter(
        one.spec.node_name for one in w.view.attachments.values() if one.status.attached
    )
    assert all(count <= REAL_LIMIT for count in attached.values())
    holders = Counter(one.volume for one in w.view.attachments.values())
    assert all(count == 1 for count in holders.values())


def _scaled(obj: Any, replicas: int) -> Any:
    obj["spec"]["replicas"] = replicas
    return obj


def _imaged(obj: Any, number: int) -> Any:
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = f"image-{number}"
    return obj
