"""A scheduler at work on a cluster, and what to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bayplan.client import Client, Untyped
from bayplan.fit import Profile
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.pods import Pod
from bayplan.observe import LiveSnapshot
from bayplan.scheduler.config import SchedulerSettings, default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from bayplan.scheduler.scheduler import Scheduler
from tests.patience import PATIENCE

NAME = "bayplan"
NOT_READY: Untyped = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
"""An API server taints new nodes so, and where there is no controller they stay that way."""


class RunningScheduler:
    """A scheduler at work."""

    def __init__(self, client: Client, daemon: SchedulerDaemon) -> None:
        self.client = client
        self._daemon = daemon
        self._news = asyncio.Event()
        self.live.observer.listen(self._heard)

    @property
    def live(self) -> LiveSnapshot:
        assert self._daemon.live is not None
        return self._daemon.live

    @property
    def scheduler(self) -> Scheduler:
        assert self._daemon.scheduler is not None
        return self._daemon.scheduler

    def _heard(self, _: ClusterEvent) -> None:
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until the cluster comes to a state."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod as the API server has reported it."""
        return self.live.cached(Pod).get(f"{namespace}/{name}")

    def node_of(self, namespace: str, name: str) -> str:
        found = self.pod(namespace, name)
        return "" if found is None else found.spec.node_name

    def condition_message(self, namespace: str, name: str) -> str:
        """The message of the pod's PodScheduled condition."""
        found = self.pod(namespace, name)
        conditions = found.status.conditions if found is not None else []
        return next((one.message for one in conditions if one.type == "PodScheduled"), "")

    async def placed(self, namespace: str, *names: str) -> list[str]:
        """The nodes of these pods, once they all have one."""
        await self.until(lambda: all(self.node_of(namespace, name) for name in names))
        return [self.node_of(namespace, name) for name in names]


@asynccontextmanager
async def scheduling(
    client: Client, settings: SchedulerSettings | None = None, *, profile: Profile | None = None
) -> AsyncIterator[RunningScheduler]:
    """A scheduler at work until the end, when nothing assumed may be left."""
    daemon = SchedulerDaemon(settings or default_settings([NAME]), profile=profile)
    task = asyncio.ensure_future(daemon.lead(client))
    try:
        async with asyncio.timeout(PATIENCE):
            await daemon.ready.wait()
        running = RunningScheduler(client, daemon)
        yield running
        await running.until(lambda: not running.live.snapshot.assumptions())
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def node(name: str, cpu: str = "4", **labels: str) -> Untyped:
    size = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": size, "allocatable": size},
    }


def pod(namespace: str, name: str, cpu: str = "100m", **spec: object) -> Untyped:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "schedulerName": NAME,
            "containers": [container],
            "tolerations": [NOT_READY],
            **spec,
        },
    }
