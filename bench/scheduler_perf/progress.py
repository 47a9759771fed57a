"""The progress of a run, by a watch of pods: how many have nodes, and since when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from bayplan.client import Change, Client, Informer, Selection
from bayplan.client.resources import Resource
from bayplan.kube.meta import Condition, KubeObject, Struct

LONGEST = 900.0
PAUSE = 0.05
"""Seconds between two looks at pods that a step waits for."""


class PodNodeSpec(Struct):
    """Where a pod is."""

    node_name: str = ""


class PodConditions(Struct):
    """The conditions of a pod."""

    conditions: list[Condition] = []


class WatchedPod(KubeObject):
    """The few fields of a pod that are read here."""

    spec: PodNodeSpec = msgspec.field(default_factory=PodNodeSpec)
    status: PodConditions = msgspec.field(default_factory=PodConditions)


WATCHED_PODS = Resource(WatchedPod, "", "v1", "pods", "Pod")
_BOUND = Selection(fields="spec.nodeName!=")


@dataclass(frozen=True, slots=True)
class PodSelection:
    """Some pods: of these namespaces (all, if none is named) with these labels."""

    namespaces: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, pod: WatchedPod) -> bool:
        if self.namespaces and pod.namespace not in self.namespaces:
            return False
        return all(pod.metadata.labels.get(key) == value for key, value in self.labels.items())


class Progress:
    """Watches the pods of a cluster that have nodes, or all, if those that wait are asked for."""

    def __init__(self, client: Client, *, everything: bool = False) -> None:
        self._client = client
        self._pods = Informer(client, WATCHED_PODS, Selection() if everything else _BOUND)
        self._pods.on_change(self._noted)
        self._following = asyncio.ensure_future(self._pods.run())
        self._listeners: list[Callable[[WatchedPod], None]] = []
        self.bound: Counter[str] = Counter()
        """How many pods of each namespace ever got a node."""
        self._news = asyncio.Event()

    async def synced(self) -> None:
        """Wait for the first whole picture."""
        await self._pods.synced.wait()

    async def close(self) -> None:
        """Watch no longer."""
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)

    def listen(self, listener: Callable[[WatchedPod], None]) -> None:
        """Call that for every pod that gets a node, when it does."""
        self._listeners.append(listener)

    async def until_bound(self, namespace: str, count: int) -> None:
        """Wait until that many pods of a namespace have got nodes."""
        async with asyncio.timeout(LONGEST):
            while self.bound[namespace] < count:
                self._news.clear()
                await self._news.wait()

    async def until(self, which: PodSelection, count: int, *, attempted: bool = False) -> None:
        """Wait until that many pods have nodes or, at least, have been tried."""
        holds = _is_tried if attempted else _is_bound
        async with asyncio.timeout(LONGEST):
            while sum(holds(pod) for pod in self._pods.objects.values() if pod in which) < count:
                await self._client.clock.sleep(PAUSE)

    def _noted(self, change: Change[WatchedPod]) -> None:
        if change.type == "deleted" or not _is_bound(change.object) or _is_bound(change.old):
            return
        self.bound[change.object.namespace] += 1
        self._news.set()
        for listener in self._listeners:
            listener(change.object)


def _is_bound(pod: WatchedPod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name)


def _is_tried(pod: WatchedPod) -> bool:
    return _is_bound(pod) or any(one.type == "PodScheduled" for one in pod.status.conditions)


@dataclass(slots=True)
class Throughput:
    """What was measured: pods bound, second by second, and how long each took."""

    samples: list[float] = field(default_factory=list)
    """Pods a second, as upstream samples them: the first is left out, idle seconds are made up."""
    pods: int = 0
    seconds: float = 0.0
    """From the beginning of the step to the last pod's node."""
    waits: list[float] = field(default_factory=list)
    """Seconds from a pod's creation (when it was asked for) to its node (when it was observed)."""

    @property
    def average(self) -> float:
        """Upstream's figure: the average of the samples; over all if it took no two seconds."""
        return sum(self.samples) / len(self.samples) if self.samples else self.overall

    @property
    def overall(self) -> float:
        """Pods a second from the beginning to the last."""
        return self.pods / self.seconds if self.seconds else 0.0

    def alone(self, cpu: Sequence[float]) -> float:
        """Pods a second on two otherwise idle cores, by what the processes took of them."""
        busy = max(*cpu, sum(cpu) / 2)
        return self.pods / busy if busy else 0.0

    def wait(self, share: float) -> float | None:
        """The time within which that share of the pods got its node, in seconds."""
        waits = sorted(self.waits)
        return waits[min(len(waits) - 1, int(share * len(waits)))] if waits else None


class Measurement:
    """Counts pods that get nodes, from when it is made until it ends."""

    def __init__(self, progress: Progress, which: PodSelection) -> None:
        self._which = which
        self._began = time.perf_counter()
        self._sent: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self._samples: list[float] = []
        self._first = asyncio.Event()
        self._task = asyncio.ensure_future(self._sample())
        progress.listen(self._noted)

    def sent(self, uid: str, moment: float) -> None:
        """A pod was asked for at that moment."""
        self._sent[uid] = moment

    async def end(self) -> Throughput:
        """Count no more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        last = max(self._bound.values(), default=self._began)
        waits = [
            moment - self._sent[uid] for uid, moment in self._bound.items() if uid in self._sent
        ]
        return Throughput(self._samples, len(self._bound), last - self._began, waits)

    def _noted(self, pod: WatchedPod) -> None:
        if pod in self._which and not self._task.done():
            self._bound[pod.metadata.uid] = time.perf_counter()
            self._first.set()

    async def _sample(self) -> None:
        """Sample as upstream does: nothing before the first pod, and not the first second."""
        await self._first.wait()
        await asyncio.sleep(1.0)
        last, at, skipped = len(self._bound), time.perf_counter(), 0
        while True:
            await asyncio.sleep(1.0)
            now, count = time.perf_counter(), len(self._bound)
            if count == last:
                skipped += 1
                continue
            self._samples += [(count - last) / (now - at)] * (skipped + 1)
            last, at, skipped = count, now, 0


def spread(namespaces: Sequence[str], labels: Mapping[str, str] | None = None) -> PodSelection:
    """The pods of those namespaces with those labels."""
    return PodSelection(frozenset(namespaces), dict(labels or {}))
