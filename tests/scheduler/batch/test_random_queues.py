"""Over random trees, gangs, arrivals, deletions and faults: quota is never exceeded, no node is
bought for whoever waits for it, no gang is split, and nobody is starved who could run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bayplan.client import Client, Untyped, deletion
from bayplan.client.errors import NotFoundError
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.lab import VirtualLab, run_virtually
from bayplan.queues import Gate, Group, Ledger, TaskStatus
from bayplan.queues.orders import group_order
from bayplan.scheduler.config import default_settings
from tests.scheduler.batch import objects
from tests.scheduler.batch.node_provisioner import NodeProvisioner, run_pods
from tests.scheduler.batch.schedules import LAST, BindJob, Schedule, schedules
from tests.scheduler.batch.truth import QUEUE_OF, QuotaTruth
from tests.scheduler.faults.clusters import Replica, check_at_rest
from tests.scheduler.faults.schedules import LEASE
from tests.scheduler.running_scheduler import node

pytestmark = pytest.mark.whole


NOBODY = parse_cluster(b"seed: 1\n", "empty", Path())
QUIET = 380.0
"""Seconds after the last fault within which everything must have come to rest."""
ENDING = 20.0
HIGH = 10


@given(schedules())
@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
def test_quota_holds_and_nobody_is_starved(schedule: Schedule) -> None:
    run_virtually(check(schedule))


@dataclass(slots=True)
class RandomQueuesRun:
    """A cluster with queues, an autoscaler, and schedulers on wires that fail."""

    lab: VirtualLab
    client: Client
    truth: QuotaTruth
    provisioner: NodeProvisioner
    replicas: list[Replica]

    def replica(self, schedule: Schedule) -> None:
        """Start a scheduler."""
        made = Replica(self.lab, schedule.faults, len(self.replicas) + 1, self.lab.clock)
        made.start(default_settings(["bayplan"]))
        self.replicas.append(made)


@asynccontextmanager
async def random_queues_run(schedule: Schedule) -> AsyncIterator[RandomQueuesRun]:
    """A stage on which a schedule can be played."""
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await objects.install_kinds(client)
        for one in schedule.queues:
            limit = None if one.cpu is None else {"cpu": str(one.cpu)}
            said = {"parent": one.parent, "dequeueStrategy": one.strategy}
            spec = {key: value for key, value in said.items() if value}
            await client.create(objects.queue(one.name, limit, priority=one.priority, **spec))
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        await client.create({**kind, "metadata": {"name": "high"}, "value": HIGH})
        for number in range(schedule.nodes):
            await client.create(node(f"first-{number}", "3"))
        limits = {one.name: Fraction(one.cpu) for one in schedule.queues if one.cpu is not None}
        truth = QuotaTruth(limits, {one.name: one.parent for one in schedule.queues})
        lab.plane.store.listeners.append(truth.observe)
        provisioner = NodeProvisioner(client)
        made = RandomQueuesRun(lab, client, truth, provisioner, [])
        others = [asyncio.ensure_future(one) for one in (provisioner.run(), run_pods(client))]
        try:
            yield made
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            for replica in made.replicas:
                await replica.stop()
                await replica.client.close()


async def check(schedule: Schedule) -> None:
    """Play a schedule, and see that all is well in the end."""
    async with random_queues_run(schedule) as it:
        await play(it, schedule)
        assert it.truth.wrongs == []
        assert {uid: n for uid, n in it.truth.binds.items() if n != 1} == {}
        ledger = await ledger_of(it.client)
        assert split(ledger) == []
        assert starved(ledger) == []
        for replica in it.replicas:
            if not replica.wire.is_dead:
                check_at_rest(replica)


async def play(it: RandomQueuesRun, schedule: Schedule) -> None:
    """Let all happen that is to, and then nothing for a while."""
    it.replica(schedule)
    for moment, act, job in sorted(_acts(schedule), key=lambda one: one[0]):
        await it.lab.forward(max(0.0, moment - it.lab.clock.monotonic()))
        await _carry_out(it, schedule, act, job)
    await it.lab.forward(max(0.0, LAST - it.lab.clock.monotonic()))
    await it.lab.forward(QUIET)


Act = tuple[float, str, BindJob | None]


def _acts(schedule: Schedule) -> list[Act]:
    acts: list[Act] = []
    for job in schedule.jobs:
        acts.append((job.at, "create", job))
        if job.ends_at is not None:
            ends = max(job.at, job.ends_at) + 0.1
            acts.append((ends, "delete" if job.gracefully else "end", job))
            acts.append((ends + ENDING, "end", job))
    if schedule.killed_at is not None:
        acts.append((schedule.killed_at, "kill", None))
        acts.append((schedule.killed_at + LEASE, "replace", None))
    return acts


async def _carry_out(
    it: RandomQueuesRun, schedule: Schedule, act: str, job: BindJob | None
) -> None:
    if job is None:
        await (it.replicas[0].kill() if act == "kill" else _replace(it, schedule))
    elif act == "create":
        await it.client.create(
            objects.group("default", job.name, job.queue, job.least, **_rank(job))
        )
        for number in range(job.pods):
            await it.client.create(_pod(job, number))
    else:
        options = deletion(grace=0) if act == "end" else None
        for number in range(job.pods):
            with suppress(NotFoundError):
                await it.client.delete(Pod, "default", f"{job.name}-{number}", options=options)


async def _replace(it: RandomQueuesRun, schedule: Schedule) -> None:
    it.replica(schedule)


def _rank(job: BindJob) -> dict[str, str]:
    return {"priorityClassName": job.priority} if job.priority else {}


def _pod(job: BindJob, number: int) -> Untyped:
    gated = job.gate == "gated"
    made = objects.pod(
        "default", f"{job.name}-{number}", str(job.cpu), group=job.name, gated=gated, **_rank(job)
    )
    meta = made["metadata"]
    assert isinstance(meta, dict)
    meta["labels"] = {QUEUE_OF: job.queue}
    if job.gate == "asked":
        meta["annotations"].update(objects.OPT_IN)
    return made


async def ledger_of(client: Client) -> Ledger:
    """All queues, reckoned afresh from what the API server has."""
    ledger = Ledger(priority_of=lambda name: HIGH if name == "high" else 0)
    for queue in (await client.list(Queue)).items:
        ledger.put_queue(queue)
    for group in (await client.list(PodGroup)).items:
        ledger.put_group(group)
    for pod in (await client.list(Pod)).items:
        member = ledger.put_pod(pod)
        if member.reserved and not _was_admitted(pod):
            ledger.release(member)
    return ledger


def split(ledger: Ledger) -> list[str]:
    """The gangs of which some pods have nodes or have lost their gates, but not enough."""
    return [group.key for group in ledger.groups.values() if 0 < _begun(group) < group.min_member
            and group.invalid is None]  # fmt: skip


def _begun(group: Group) -> int:
    pending = [one for one in group.of_status(TaskStatus.PENDING) if one.gate is Gate.NONE]
    return group.ready_count + len(
        [one for one in pending if one.opted_in and _was_admitted(one.pod)]
    )


def _was_admitted(pod: Pod) -> bool:
    return any(one.reason in {"Unschedulable", "Schedulable"} for one in pod.status.conditions)


def starved(ledger: Ledger) -> list[str]:
    """The groups that wait though they could run: there is quota, and a node can be bought; but for
    those that wait in a strict queue, behind another.
    """
    waiting = [group for group in ledger.groups.values() if _waits(group)]
    return [group.key for group in waiting if _could_run(ledger, group)
            and not any(_is_before(ledger, other, group) for other in waiting)]  # fmt: skip


def _is_before(ledger: Ledger, other: Group, group: Group) -> bool:
    strict = ledger.tree.nodes[group.queue].queue.spec.dequeue_strategy == "fifo"
    return strict and other.queue == group.queue and group_order(other) < group_order(group)


def _waits(group: Group) -> bool:
    return bool(group.count(TaskStatus.PENDING)) and group.invalid is None


def _could_run(ledger: Ledger, group: Group) -> bool:
    pending = list(group.of_status(TaskStatus.PENDING))
    needed = max(group.min_member - group.ready_count, 1)
    for one in pending:
        ledger.release(one)
    return ledger.may_allocate_all(group, pending[:needed]) is None
