"""Jobs count every pod that ends exactly once, whatever is lost, deleted or restarted meanwhile."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.embedded.apiserver.request import DeletionOptions
from bayplan.embedded.apiserver.rest import deletion
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import (
    ControllerContext,
    Delete,
    Plan,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.sink import ActionSink
from bayplan.embedded.control.view import JOBS, PODS, StoreView
from bayplan.embedded.nodes import kubelet
from bayplan.embedded.nodes.kubelet import EXIT_CODE, RUNS_FOR
from bayplan.embedded.workloads.jobcounts import TRACKING, format_indexes, index_of, parse_indexes
from bayplan.embedded.workloads.jobs import JobOrphans, Jobs
from bayplan.lab import run_virtually
from tests.clocks import VirtualClock
from tests.embedded.apiserver.backends import call_of, new_backend
from tests.embedded.simulation.virtual_clusters import VirtualCluster, virtual_cluster, workload

pytestmark = pytest.mark.whole


KEY = ObjectKey(JOBS, "default", "sum")
SECOND = 1.0
LONG = 700.0
"""Longer than any pause between failures."""

Move = tuple[str, int]
moves = st.lists(
    st.tuples(
        st.sampled_from(["decide", "succeed", "fail", "delete", "force", "restart"]),
        st.integers(0, 9),
    ),
    max_size=40,
)


class JobControllerFixture:
    """A Job controller alone with a store: the test is the kubelets, the users and the crashes."""

    def __init__(self, backend: Any, clock: VirtualClock) -> None:
        self.clock = clock
        self.view = StoreView(backend.store)
        self.context = ControllerContext(self.view, clock, Random(1))
        self.sink = ActionSink(backend)
        self.seen: dict[str, str] = {}
        """How each pod that was ever made ended: "", succeeded, or failed."""
        self.index: dict[str, int] = {}
        self.restart()
        backend.store.listeners.append(self._observe)

    def restart(self) -> None:
        """A new process, which knows only what is written."""
        self.jobs, self.orphans = Jobs(self.context), JobOrphans(self.context)

    def _observe(self, change: Any) -> None:
        pod = self.view.pods.get(change.entry.key)
        if change.entry.key.storage != PODS or pod is None:
            return
        self.seen.setdefault(pod.uid, "")
        self.index[pod.uid] = index_of(pod)
        if not self._told(pod):
            self.seen[pod.uid] = _outcome(pod)

    def _told(self, pod: PodFacts) -> bool:
        """Whether the controller has said how a pod ended: then nothing changes that any more."""
        uncounted = (self.status.get("uncountedTerminatedPods") or {}).get("failed") or ()
        return pod.uid in uncounted or TRACKING not in (pod.metadata.finalizers or ())

    async def act(self, move: Move) -> None:
        """One thing that may happen."""
        name, number = move
        if name == "decide":
            await self.decide(number)
        elif name == "restart":
            self.restart()
        else:
            pods = sorted(self.view.pods.items())
            if pods:
                await self._strike(name, *pods[number % len(pods)])

    async def _strike(self, name: str, key: ObjectKey, pod: PodFacts) -> None:
        if name in ("succeed", "fail") and pod.is_terminal:
            return
        steps: dict[str, Any] = {
            "succeed": Update(key, lambda obj: kubelet.ended(obj, self.context.now(), 0), "status"),
            "fail": Update(key, lambda obj: kubelet.ended(obj, self.context.now(), 1), "status"),
            "delete": Delete(key, pod.uid),
            "force": Delete(key, pod.uid, 0),
        }
        await self.sink.apply(steps[name])

    async def decide(self, steps: int) -> None:
        """Decide, and carry out only so many of the steps: then the process may be gone."""
        self.clock.skip(SECOND)
        await self._carry_out(self.jobs.decide(KEY)[:steps])
        await self.let_go()

    async def let_go(self) -> None:
        for key in sorted(self.view.pods):
            await self._carry_out(self.orphans.decide(key))

    async def _carry_out(self, plan: Plan) -> None:
        for step in plan:
            if not isinstance(step, RequeueAfter):
                await self.sink.apply(step)

    @property
    def status(self) -> Any:
        return (self.view.object(KEY) or {}).get("status") or {}

    def known(self, outcome: str) -> int:
        """How many of an outcome the status knows of, counted or not."""
        uncounted = (self.status.get("uncountedTerminatedPods") or {}).get(outcome) or ()
        return (self.status.get(outcome) or 0) + len(uncounted)

    def ended(self, outcome: str) -> list[str]:
        return [uid for uid, how in self.seen.items() if how == outcome]

    @property
    def over(self) -> bool:
        conditions = self.status.get("conditions") or ()
        return any(one["type"] in ("Complete", "Failed") for one in conditions)

    async def finish(self) -> None:
        """Let everything run and succeed until the job has ended."""
        for _ in range(60):
            self.clock.skip(LONG)
            for key, pod in sorted(self.view.pods.items()):
                if pod.is_terminating:
                    await self._strike("force", key, pod)
                elif pod.is_active:
                    await self._strike("succeed", key, pod)
            await self.decide(100)
            if self.over:
                return


def _outcome(pod: PodFacts) -> str:
    """As Kubernetes counts it: whoever is asked to go before it ends has failed."""
    if pod.phase == "Succeeded":
        return "succeeded"
    return "failed" if pod.is_terminating or pod.phase == "Failed" else ""


async def _bench(**spec: Any) -> JobControllerFixture:
    clock = VirtualClock()
    backend = await new_backend(clock)
    bench = JobControllerFixture(backend, clock)
    template = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    template["nodeName"] = "node"
    job = workload("Job", "sum", template=template, backoffLimit=1000, **spec)
    job["metadata"]["namespace"] = "default"
    await bench.sink.create(JOBS, job)
    return bench


@settings(max_examples=60, deadline=None)
@given(moves, st.integers(1, 6), st.integers(1, 4))
def test_every_pod_is_counted_once_and_the_job_ends_with_what_was_asked(
    steps: list[Move], completions: int, parallelism: int
) -> None:
    async def story() -> None:
        bench = await _bench(completions=completions, parallelism=parallelism)
        most = 0
        for move in steps:
            await bench.act(move)
            assert most <= bench.known("succeeded") <= len(bench.ended("succeeded"))
            assert len(bench.ended("succeeded")) <= completions
            most = bench.known("succeeded")
        await bench.finish()
        assert bench.over
        assert bench.status["succeeded"] == completions == len(bench.ended("succeeded"))
        assert bench.status["failed"] == len(bench.ended("failed"))
        assert bench.status["active"] == 0
        assert not bench.status["uncountedTerminatedPods"]

    asyncio.run(story())


@settings(max_examples=60, deadline=None)
@given(moves, st.integers(1, 6), st.integers(1, 4))
def test_each_index_of_an_indexed_job_succeeds_once(
    steps: list[Move], completions: int, parallelism: int
) -> None:
    async def story() -> None:
        bench = await _bench(
            completions=completions, parallelism=parallelism, completionMode="Indexed"
        )
        for move in steps:
            await bench.act(move)
        await bench.finish()
        assert bench.over
        assert parse_indexes(bench.status["completedIndexes"]) == set(range(completions))
        assert bench.status["succeeded"] == completions
        indexes = [bench.index[uid] for uid in bench.ended("succeeded")]
        assert sorted(indexes) == list(range(completions))
        assert bench.status["failed"] == len(bench.ended("failed"))

    asyncio.run(story())


@settings(max_examples=60, deadline=None)
@given(moves, st.integers(0, 3))
def test_failures_are_counted_once_towards_the_limit(steps: list[Move], limit: int) -> None:
    async def story() -> None:
        bench = await _bench(completions=50, parallelism=3)
        edit = Update(KEY, lambda obj: _limited(obj, limit))
        await bench.sink.apply(edit)
        for move in steps:
            await bench.act(move)
        for _ in range(20):
            await bench.decide(100)
        reasons = {one["reason"] for one in bench.status.get("conditions") or ()}
        lost = bench.known("failed")
        assert ("BackoffLimitExceeded" in reasons) == (lost > limit)
        # Of a job that is lost, those that still ran have failed too.
        assert lost + bench.known("succeeded") <= len(bench.seen)

    asyncio.run(story())


async def test_a_pod_that_was_counted_as_failed_is_let_go_though_it_succeeds_after_all() -> None:
    bench = await _bench(completions=1)
    for move in (("decide", 9), ("delete", 0), ("decide", 1), ("succeed", 0)):
        await bench.act(move)
    await bench.finish()
    assert (bench.status["succeeded"], bench.status["failed"]) == (1, 1)


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_read_back_as_written(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_three_indexes_in_a_row_are_written_as_a_range() -> None:
    assert format_indexes([7, 0, 1, 3, 4, 5]) == "0,1,3-5,7"


async def test_pods_that_succeeded_on_a_node_that_is_gone_are_remembered() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job(completions=6, parallelism=2))
        made = await _watch(w, 40)
        for _ in range(3):
            await w.forward(35)
            w.simulation.cloud.delete([next(iter(w.simulation.cloud.instances))])
            w.simulation.cloud.increase("workers", 1)
            made |= await _watch(w, 120)
        made |= await _watch(w, 600)
        status = w.get(JOBS, "sum")["status"]
        assert status["succeeded"] == 6
        assert len(made) == 6 + status["failed"]


trouble = st.lists(
    st.tuples(
        st.sampled_from(["lose", "silence", "back", "delete", "force", "wait"]), st.integers(0, 50)
    ),
    max_size=15,
)


@settings(max_examples=20, deadline=None)
@given(trouble, st.integers(1, 6), st.integers(1, 3), st.sampled_from(["NonIndexed", "Indexed"]))
def test_a_job_ends_with_exactly_its_completions_whatever_happens_to_its_nodes(
    steps: list[Move], completions: int, parallelism: int, mode: str
) -> None:
    async def story() -> None:
        async with virtual_cluster(placing=True) as w:
            job = _job(completions=completions, parallelism=parallelism, completionMode=mode)
            await w.create(_limited(job, 100))
            ended: dict[str, str] = {}
            w.view.store.listeners.append(lambda change: _note(w, change, ended))
            for name, number in steps:
                await _trouble(w, name, number)
                await w.forward(1)
            w.clear()
            await w.forward(7200)
            status = w.get(JOBS, "sum")["status"]
            assert status["conditions"][0]["type"] == "Complete"
            assert status["succeeded"] == completions
            assert list(ended.values()).count("succeeded") == completions
            assert status["failed"] == list(ended.values()).count("failed")

    run_virtually(story())


def _note(w: VirtualCluster, change: Any, ended: dict[str, str]) -> None:
    pod = w.view.pods.get(change.entry.key)
    if change.entry.key.storage == PODS and pod is not None and _outcome(pod):
        ended.setdefault(pod.uid, _outcome(pod))


async def _trouble(w: VirtualCluster, name: str, number: int) -> None:
    cloud, pods = w.simulation.cloud, sorted(w.view.pods.items())
    machines = sorted(cloud.instances)
    if name == "wait":
        await w.forward(number)
    elif name == "lose":
        cloud.delete([machines[number % len(machines)]])
        cloud.increase("workers", 1)
    elif name == "silence":
        w.inject(kind="node-dies", node=machines[number % len(machines)])
    elif name == "back":
        w.clear()
    elif pods:
        key = pods[number % len(pods)][0]
        await w.delete(PODS, key.name, **({"grace_seconds": 0} if name == "force" else {}))


async def test_a_deleted_job_leaves_no_pod_that_waits_to_be_counted() -> None:
    for propagation in ("Background", "Foreground"):
        async with virtual_cluster(placing=True) as w:
            await w.create(_job(completions=3, parallelism=3))
            await w.forward(10)
            await _delete_job(w, propagation)
            await w.forward(60)
            assert not w.view.pods
            assert w.get(JOBS, "sum") is None


async def test_orphaned_pods_of_a_job_are_let_go() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job(completions=2, parallelism=2))
        await w.forward(10)
        await _delete_job(w, "Orphan")
        await w.forward(120)
        assert w.phases() == {"Succeeded": 2}
        assert not any(TRACKING in (one.metadata.finalizers or ()) for one in w.view.pods.values())


async def test_pods_are_replaced_after_they_ended_where_the_job_says_so() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job(completions=1, podReplacementPolicy="Failed"))
        await w.forward(10)
        await w.delete(PODS, next(iter(w.view.pods)).name)
        await w.forward(0.5)
        assert [one.is_terminating for one in w.view.pods.values()] == [True]
        await w.forward(300)
        status = w.get(JOBS, "sum")["status"]
        assert (status["succeeded"], status["failed"]) == (1, 1)


async def test_a_suspended_job_deletes_its_pods_without_a_failure_and_goes_on_later() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job(completions=2, parallelism=2))
        await w.forward(10)
        await w.edit(JOBS, "sum", lambda obj: _suspended(obj, True))
        await w.forward(10)
        status = w.get(JOBS, "sum")["status"]
        assert (status["active"], status["failed"], len(w.view.pods)) == (0, 0, 0)
        assert status["conditions"][0]["reason"] == "JobSuspended"
        await w.edit(JOBS, "sum", lambda obj: _suspended(obj, False))
        await w.forward(120)
        assert w.get(JOBS, "sum")["status"]["succeeded"] == 2


async def test_the_others_of_a_work_queue_end_by_themselves() -> None:
    async with virtual_cluster(placing=True) as w:
        job = _job(parallelism=3)
        del job["spec"]["completions"]
        await w.create(job)
        await w.forward(200)
        assert w.phases() == {"Succeeded": 3}
        assert w.get(JOBS, "sum")["status"]["succeeded"] == 3


async def test_a_failing_job_waits_longer_and_longer_before_it_tries_again() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job(completions=1, backoffLimit=3, runs_for="1s", exit_code="1"))
        made = set()
        for wait, expected in ((10, 1), (10, 2), (10, 2), (15, 3), (25, 3), (20, 4)):
            await w.forward(wait)
            made |= {one.uid for one in w.view.pods.values()}
            assert len(made) == expected
        await w.forward(60)
        status = w.get(JOBS, "sum")["status"]
        assert [one["type"] for one in status["conditions"]] == ["Failed", "FailureTarget"]


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
async def test_a_smaller_parallelism_ends_pods_without_a_failure(mode: str) -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job(completions=4, parallelism=4, completionMode=mode))
        await w.forward(10)
        await w.edit(JOBS, "sum", lambda obj: _parallel(obj, 1))
        await w.forward(10)
        status = w.get(JOBS, "sum")["status"]
        assert (status["active"], status["failed"]) == (1, 0)
        await w.forward(400)
        assert w.get(JOBS, "sum")["status"]["succeeded"] == 4


def _job(
    *, runs_for: str = "30s", exit_code: str = "0", completions: int = 1, **spec: Any
) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = workload("Job", "sum", template=pod, completions=completions, **spec)
    notes = {RUNS_FOR: runs_for, EXIT_CODE: exit_code}
    job["spec"]["template"]["metadata"]["annotations"] = notes
    return job


async def _watch(w: VirtualCluster, seconds: int) -> set[str]:
    """The UIDs of all pods that there were meanwhile."""
    seen = set()
    for _ in range(seconds):
        await w.forward(1)
        seen |= {one.uid for one in w.view.pods.values()}
    return seen


async def _delete_job(w: VirtualCluster, propagation: str) -> None:
    backend = w.run.plane.backend
    await deletion.delete(
        backend, call_of(backend, JOBS, "sum"), DeletionOptions(propagation=propagation)
    )


def _limited(obj: Any, limit: int) -> Any:
    obj["spec"]["backoffLimit"] = limit
    return obj


def _suspended(obj: Any, value: bool) -> Any:
    obj["spec"]["suspend"] = value
    return obj


def _parallel(obj: Any, value: int) -> Any:
    obj["spec"]["parallelism"] = value
    return obj
