"""What is said of queues, what one cycle would decide, and what a scheduler does are the same."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bayplan.client import Client
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.lab import VirtualLab, run_virtually
from bayplan.queues import Ledger
from bayplan.queues.actions import act
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.queue_snapshot import fill, queue_snapshot
from bayplan.queues.session import CyclePlan, Session
from tests.scheduler.batch import objects
from tests.scheduler.batch.schedules import QueueMade, Schedule, trees
from tests.scheduler.batch.test_random_queues import NOBODY
from tests.scheduler.running_scheduler import node, scheduling


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that need each other to start, and have the gate."""

    queue: str
    pods: int
    cpu: int


@dataclass(frozen=True, slots=True)
class UnscheduledCluster:
    """A cluster that nobody has scheduled yet."""

    queues: tuple[QueueMade, ...]
    gangs: tuple[Gang, ...]
    has_node: bool


@st.composite
def pictures(draw: st.DrawFn) -> UnscheduledCluster:
    """Queues with gangs in them, and a node for all or none at all."""
    queues = draw(trees())
    leaves = Schedule(queues, (), (), None, 0).leaves
    gang = st.builds(Gang, st.sampled_from(leaves), st.integers(1, 4), st.integers(0, 3))
    return UnscheduledCluster(queues, tuple(draw(st.lists(gang, max_size=10))), draw(st.booleans()))


@given(pictures())
@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
def test_all_agree_on_who_is_let_in(picture: UnscheduledCluster) -> None:
    run_virtually(check(picture))


async def check(picture: UnscheduledCluster) -> None:
    """See that all three come to the same."""
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await objects.install_kinds(client)
        await make(client, picture)
        found = await everything(client)
        async with scheduling(client):
            await lab.forward(30)
        pods = (await client.list(Pod)).items
        admit = {one.key for one in pods if not one.spec.scheduling_gates}
        assert said_to_have_room(found) == admit
        assert decided(found) == admit
        assert {one.key for one in pods if one.spec.node_name} == (
            admit if picture.has_node else set()
        )


async def make(client: Client, picture: UnscheduledCluster) -> None:
    """Make all of it."""
    for one in picture.queues:
        limit = None if one.cpu is None else {"cpu": str(one.cpu)}
        said = {"parent": one.parent, "dequeueStrategy": one.strategy}
        spec = {key: value for key, value in said.items() if value}
        await client.create(objects.queue(one.name, limit, priority=one.priority, **spec))
    for number, gang in enumerate(picture.gangs):
        name = f"g{number}"
        await client.create(objects.group("default", name, gang.queue, gang.pods))
        for index in range(gang.pods):
            made = objects.pod("default", f"{name}-{index}", str(gang.cpu), group=name)
            await client.create(made)
    if picture.has_node:
        await client.create(node("n", "200"))


async def everything(client: Client) -> list[KubeObject]:
    """All objects that matter."""
    found: list[KubeObject] = []
    for kind in (Queue, PodGroup, Node, Pod):
        found += (await client.list(kind)).items
    return found


def said_to_have_room(found: list[KubeObject]) -> set[str]:
    """The pods of which it is said that their queue has room for them."""
    waiting = queue_snapshot(found).waiting()
    return {pod for one in waiting if not one.is_for_queue for pod in one.pods}


def decided(found: list[KubeObject]) -> set[str]:
    """The pods whose gates a cycle would remove."""
    return {*plan_of(found).ungated}


def plan_of(found: list[KubeObject]) -> CyclePlan:
    """What a cycle would decide."""
    ledger = Ledger()
    fill(ledger, found, lambda _: True)
    session = Session(ledger, SnapshotPlacement(Snapshot(found), ledger.leaving()))
    act(session)
    return session.plan
