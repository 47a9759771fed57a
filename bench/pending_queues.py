"""5,000 queues in a tree of depth 4, with a pod that waits for quota in each leaf: what a cycle of
the scheduler costs when nothing has changed, and what it costs when a pod has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from bayplan.base.clock import WallClock
from bayplan.client import Change
from bayplan.client.events import NullEventRecorder
from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.meta import ObjectMeta, Quantity
from bayplan.kube.pods import Container, Pod, PodSchedulingGate, PodSpec, ResourceRequirements
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE, Queue, QueueSpec
from bayplan.scheduler.batch.batch_scheduler import BatchScheduler
from bayplan.scheduler.binding import Binder
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.context import Recorders, SchedulerContext
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dryrun import ShownWrites
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.status_patcher import StatusPatcher
from bayplan.scheduler.volumes import Observed, VolumeBinder
from bench.measure import Result

WIDTH = 17
"""Queues below each queue: 17 + 17^2 + 17^3 are a little more than 5,000."""
IDLE = 2000
NAME = "bayplan"
_GATE_REQUESTED = {QUEUE_SCHEDULING_GATE: "true"}


def cases() -> Iterator[Result]:
    """Every figure, as it is measured."""
    yield from asyncio.run(_measure())


async def _measure() -> list[Result]:
    context, batch = _scheduler()
    queues = list(_tree())
    parents = {one.spec.parent for one in queues}
    for queue in queues:
        batch.on_queue_change(Change("added", new=queue))
    pods = [pod for one in queues if one.name not in parents for pod in _pods(one.name)]
    for pod in pods:
        batch.on_event(ClusterEvent.of(None, pod))
    batch.on_kinds_served()
    first = _cycles(context, batch)
    began = time.process_time()
    for _ in range(IDLE):
        _cycle(context, batch)
    idle = (time.process_time() - began) / IDLE
    ended = 0.0
    for pod in pods[:200:2]:
        batch.on_event(ClusterEvent.of(pod, None))
        ended += _cycles(context, batch)
    return [
        Result("batch/pending-queues/queues", len(queues), ""),
        Result("batch/pending-queues/first", first, "s"),
        Result("batch/pending-queues/idle", idle * 1000, "ms"),
        Result("batch/pending-queues/ended", ended / 100 * 1000, "ms"),
    ]


def _cycles(context: SchedulerContext, batch: BatchScheduler) -> float:
    """Return the seconds until no pod can be placed any more."""
    began = time.process_time()
    while _cycle(context, batch):
        pass
    return time.process_time() - began


def _cycle(context: SchedulerContext, batch: BatchScheduler) -> bool:
    """One round of the scheduler's loop."""
    popped = context.queue.pop(context.clock.monotonic())
    return batch.turn() or popped is not None


def _scheduler() -> tuple[SchedulerContext, BatchScheduler]:
    writes = ShownWrites(lambda _key, _text: None)
    recorders = Recorders({NAME: NullEventRecorder()}, SchedulerMetrics(CollectorRegistry()))
    settings, clock = default_settings([NAME]), WallClock()
    context = SchedulerContext(
        Snapshot(), settings, StatusPatcher(writes.patch_status), recorders, clock
    )
    nothing = Observed(lambda _key: None, lambda _key: None, lambda _key: None)
    volumes = VolumeBinder(writes, nothing, clock)
    cycle = SchedulingCycle(context, Binder(writes, volumes, lambda _job, _result: None), writes)
    context.batch = batch = BatchScheduler(context, cycle, writes, settings.queues)
    return context, batch


def _tree() -> Iterator[Queue]:
    level = [""]
    for depth in range(3):
        below = []
        for parent in level:
            for number in range(WIDTH):
                name = f"{parent or 'q'}-{number}"
                limit: dict[str, Quantity] = {"cpu": "1" if depth == 2 else "100000"}
                spec = QueueSpec(parent=parent, capability=limit, deserved={"cpu": "1"})
                yield Queue(metadata=ObjectMeta(name=name, uid=name), spec=spec)
                below.append(name)
        level = below


def _pods(queue: str) -> Iterator[Pod]:
    """One that takes the queue's quota, and one that waits for it."""
    for number in range(2):
        name = f"p{queue}-{number}"
        annotations = {"scheduling.volcano.sh/queue-name": queue, **_GATE_REQUESTED}
        yield Pod(
            metadata=ObjectMeta(namespace="default", name=name, uid=name, annotations=annotations),
            spec=PodSpec(
                scheduler_name=NAME,
                scheduling_gates=[PodSchedulingGate(name=QUEUE_SCHEDULING_GATE)],
                containers=[
                    Container(name="c", resources=ResourceRequirements(requests={"cpu": "1"}))
                ],
            ),
        )
