"""Hours of a busy cluster on the page, one after the other: does it grow, does it slow down?

    python -m bench.ui_hours

1,000 nodes, 20,000 pods that stay, and pods that come, are placed, run, and end, each with a group,
an event or two and a name of its own, as fast as the machine can. Compared are the second quarter
and the last: by then everything that is bounded has reached its bound.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from datetime import UTC, datetime, timedelta

import msgspec

from bayplan.client import Change
from bayplan.fit import Snapshot
from bayplan.fit.profile import CacheLimits
from bayplan.kube.events import Event
from bayplan.kube.meta import ObjectMeta, ObjectReference
from bayplan.kube.pods import Pod, PodStatus
from bayplan.kube.times import timestamp
from bayplan.kube.volcano import PodGroup, PodGroupSpec
from bayplan.observe import Observer
from bayplan.ui.changelog import PageChangeLog
from bayplan.ui.encoder import PageSource
from bayplan.ui.page import ClusterPage
from bayplan.ui.picture.picture import TRIGGERED, Picture
from bench.clusters import csinodes, nodes
from bench.measure import resident_memory
from bench.ui import Figures
from tests.builders import make_pod

NODES, PODS = 1000, 20_000
LIVES, AT_ONCE = 60_000, 300
"""Pods that come and go, and how many of them there are at a time."""
SECONDS = 0.5
"""From one pod to the next: all of them are eight hours."""
KEPT = 20
LIMITS = CacheLimits(signatures=5000, changes=5000)
"""What is kept of changes, and by the model: little, so that its filling up to its bound (32 MiB of
changes, 100,000 sets of labels) does not hide what grows without one.
"""
CHANGES = 5
"""The changes of each: it comes, is placed, runs, goes, and an event."""


class PodDrivenClock:
    """A clock that goes on with the pods."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """The moment."""
        return self.moment

    def monotonic(self) -> float:
        """The same as a number."""
        return self.moment.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Wait for real: this clock moves only with the pods."""
        await asyncio.sleep(seconds)


class BusyCluster:
    """The cluster, and its page."""

    def __init__(self) -> None:
        placed = [make_pod(f"stays-{n}").node(f"node-{n % NODES}").obj() for n in range(PODS)]
        there = [*nodes(NODES), *csinodes(NODES), *placed]
        self.observer = Observer(Snapshot(there, limits=LIMITS))
        self.time = PodDrivenClock()
        self.picture = Picture(self.observer.snapshot, self.time.now)
        self.observer.listen(self.picture.hear)
        self.page = ClusterPage(self.picture, PageSource("live", "bench", live=True), self.time)
        self.page.change_log = PageChangeLog(most=KEPT)
        self.picture.draw_all()
        self.picture.tables.forget_changes()

    def live(self, first: int, count: int) -> None:
        """Let some pods come and go, with the drawing that the page does meanwhile."""
        pods = [self._come(number) for number in range(first, first + count)]
        self._draw()
        placed = [self._change(pod, node=f"node-{n % NODES}") for n, pod in enumerate(pods)]
        self._draw()
        running = [self._change(pod, phase="Running") for pod in placed]
        self._draw()
        for number, pod in enumerate(running, first):
            self.observer.handle(Change("deleted", old=pod))
            self.page.extras.drop(PodGroup, f"default/group-{number}")
        self._draw()

    def _come(self, number: int) -> Pod:
        self.time.moment += timedelta(seconds=SECONDS)
        name, now = f"job-{number}", timestamp(self.time.moment)
        made = make_pod(name).cpu(f"{number % 40 + 1}m").labels(job=name).phase("Pending")
        pod = made.annotation("scheduling.k8s.io/group-name", f"group-{number}").obj()
        pod.metadata.creation_timestamp = now
        group = ObjectMeta(namespace="default", name=f"group-{number}")
        self.page.extras.take(PodGroup(metadata=group, spec=PodGroupSpec(queue="q")))
        self.observer.handle(Change("added", new=pod))
        about = ObjectReference(kind="Pod", namespace="default", name=name)
        note = f"pod triggered scale-up: [{{group-{number} 1->2 (max: 9)}}]"
        meta = ObjectMeta(namespace="default", name=f"event-{number}")
        event = Event(metadata=meta, reason=TRIGGERED, note=note, event_time=now, regarding=about)
        self.page.extras.take(event)
        return pod

    def _change(self, pod: Pod, node: str = "", phase: str = "Pending") -> Pod:
        spec = msgspec.structs.replace(pod.spec, node_name=node or pod.spec.node_name)
        newer = msgspec.structs.replace(pod, spec=spec, status=PodStatus(phase=phase))
        self.observer.handle(Change("updated", old=pod, new=newer))
        return newer

    def _draw(self) -> None:
        """What the page does a few times a second."""
        self.picture.tick()
        self.picture.work()
        self.picture.finish()
        self.picture.pending.compute_one()
        self.page.publish()


async def measure() -> Figures:
    """All figures."""
    hours, marks = BusyCluster(), list[tuple[float, float]]()
    for quarter in range(4):
        busy = time.process_time()
        for first in range(LIVES * quarter // 4, LIVES * (quarter + 1) // 4, AT_ONCE):
            hours.live(first, AT_ONCE)
        cost = (time.process_time() - busy) / (LIVES // 4 * CHANGES) * 1e6
        gc.collect()
        marks.append((cost, resident_memory(os.getpid())))
    (_, _), (cost, memory), _, (last_cost, last_memory) = marks
    return {
        "cost": (last_cost, "us of a core a change"),
        "slower": (last_cost / cost, "times as in the second quarter"),
        "growth": (last_memory - memory, "MiB since the second quarter"),
        "memory": (last_memory, "MiB"),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
