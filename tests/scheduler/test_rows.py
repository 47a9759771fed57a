"""Pods that are alike, tried in a row: what was found for one stands for the next, and is the same
as if each had been looked at by itself.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from bayplan.base.clock import LoopClock
from bayplan.client.events import NullEventRecorder
from bayplan.fit import ClaimBinding, Snapshot
from bayplan.kube.pods import Pod
from bayplan.lab import run_virtually
from bayplan.scheduler.attempt import Refused
from bayplan.scheduler.binding import Binder
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.context import Recorders, SchedulerContext
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dryrun import ShownWrites
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.status_patcher import StatusPatcher
from tests.fit.random_clusters import random_object, random_pod

pytestmark = pytest.mark.whole


NAME = "default-scheduler"


class NoRefusals(dict[Hashable, Refused]):
    """Keeps nothing: every pod is looked at."""

    def __setitem__(self, key: Hashable, value: Refused) -> None:
        """Gone."""


class NoVolumes:
    """Claims are bound as soon as they are decided."""

    async def bind(self, bindings: Sequence[ClaimBinding], node: str, seconds: float) -> None:
        """Done."""


@settings(max_examples=60, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 2**32), min_size=10, max_size=40),
    kinds=st.lists(st.integers(0, 2**32), min_size=1, max_size=3),
    row=st.lists(st.integers(0, 2), min_size=2, max_size=12),
)
def test_in_a_row_is_as_one_by_one(seeds: list[int], kinds: list[int], row: list[int]) -> None:
    pods = [_pod(kinds[kind % len(kinds)], number) for number, kind in enumerate(row)]
    together = run_virtually(_tried(seeds, pods, {}))
    assert together == run_virtually(_tried(seeds, pods, NoRefusals()))


async def _tried(
    seeds: list[int], pods: list[Pod], known_refusals: dict[Hashable, Refused]
) -> list[str]:
    """What comes of trying each pod once, in words."""
    snapshot = Snapshot(random_object(random.Random(seed)) for seed in seeds)
    lines: list[str] = []
    writes = ShownWrites(lambda key, text: lines.append(f"{key}: {text}"))
    told = Recorders({NAME: NullEventRecorder()}, SchedulerMetrics(CollectorRegistry()))
    context = SchedulerContext(
        snapshot, default_settings([NAME]), StatusPatcher(writes.patch_status), told, LoopClock()
    )
    context.known_refusals = known_refusals
    tries = SchedulingCycle(
        context, Binder(writes, NoVolumes(), lambda _job, _result: None), writes
    )
    for pod in pods:
        snapshot.put(pod)
        context.enqueue(pod)
    for _ in pods:
        if (entry := context.queue.pop(0.0)) is not None:
            tries.one(entry)
    writing = asyncio.ensure_future(context.statuses.run())
    await tries.preemptions.drain()
    await context.statuses.drain()
    writing.cancel()
    return sorted(lines) + [_stands(context, pod) for pod in pods]


def _stands(context: SchedulerContext, pod: Pod) -> str:
    entry = context.queue.get(pod.metadata.uid)
    known = context.snapshot.get(Pod, pod.key)
    where = f"{entry.subqueue} {sorted(entry.plugins)}" if entry is not None else "gone"
    return f"{pod.name} {where} on {known.spec.node_name if known is not None else '?'}"


def _pod(seed: int, number: int) -> Pod:
    pod = copy.deepcopy(random_pod(random.Random(seed)))
    pod.metadata.name = pod.metadata.uid = f"probe{number}"
    pod.spec.node_name, pod.spec.scheduler_name = "", NAME
    return pod
