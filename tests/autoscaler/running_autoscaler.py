"""A whole cluster with our scheduler and our autoscaler at work, in virtual time or over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bayplan.autoscaler.cloudstate.reader import AmendTemplate, unchanged
from bayplan.autoscaler.daemon import AutoscalerDaemon, OpenCloud
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client, Informers, connect, untyped
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.fit import Profile
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.lab import Lab, LiveLab, VirtualLab
from bayplan.nodegroups import Provider
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.embedded.cloud.clouds import ServedProvider
from tests.patience import PATIENCE

STORIES = Path(__file__).parents[2] / "examples" / "stories"
CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")


@dataclass(slots=True)
class RunningCluster:
    """A cluster with our scheduler and our autoscaler at work."""

    lab: Lab
    client: Client
    autoscaler: AutoscalerDaemon
    most: int = 0
    """The most instances that the cloud has had at once."""
    created_instances: set[str] = field(default_factory=set)
    """All instances that there have been."""

    async def until(self, holds: Callable[[dict[str, Pod]], bool], within: float = 3600) -> None:
        """Let time go by until that holds of all pods."""
        running = asyncio.ensure_future(self.lab.run(self.lab.simulation.now() + within))
        news = asyncio.Event()
        virtual = isinstance(self.lab, VirtualLab)
        async with Informers(self.client) as informers:
            pods = informers.of(Pod)
            pods.on_change(lambda _: news.set())
            async with asyncio.timeout(within if virtual else PATIENCE):
                while not holds(dict(pods.objects)):
                    news.clear()
                    await news.wait()
        self.lab.stop()
        await running

    async def pods(self) -> list[Pod]:
        return list((await self.client.list(Pod)).items)

    async def nodes(self) -> list[str]:
        return sorted(node.name for node in (await self.client.list(Node)).items)

    async def event_notes(self, reason: str) -> list[str]:
        """The texts of our events with this reason."""
        events = (await self.client.list(Event)).items
        return [one.note for one in events if one.reason == reason]

    async def status(self) -> dict[str, str]:
        found = await self.client.get(CONFIG_MAPS, "kube-system", "cluster-autoscaler-status")
        data = found["data"]
        assert isinstance(data, dict)
        return data

    def watch(self) -> None:
        """Record every instance that is created."""
        cloud = self.lab.simulation.cloud

        def note(name: str) -> None:
            self.created_instances.add(name)
            self.most = max(self.most, len(cloud.instances))

        cloud.listeners.append(note)


def story(name: str, *changes: tuple[str, str]) -> ClusterSpec:
    """A cluster file of the examples, with some of its words changed."""
    text = (STORIES / f"{name}.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_cluster(text.encode(), name, STORIES)


def schedulers(profile: Profile | None = None) -> SchedulerDaemon:
    return SchedulerDaemon(default_settings(["default-scheduler"]), profile=profile)


@asynccontextmanager
async def virtual_running_cluster(
    spec: ClusterSpec,
    options: AutoscalerOptions | None = None,
    *,
    profile: Profile | None = None,
    wrap: Callable[[VirtualLab, Provider], Provider] = lambda _, provider: provider,
    leads: bool = True,
    expects: AmendTemplate = unchanged,
) -> AsyncIterator[RunningCluster]:
    """A cluster in virtual time, whose autoscaler asks the cloud directly; unless it `leads` from
    the beginning, it is to be `led`.
    """
    async with VirtualLab(spec, [schedulers(profile).lead]) as lab:
        provider = wrap(lab, lab.simulation.provider)

        @asynccontextmanager
        async def cloud(_: Client) -> AsyncIterator[Provider]:
            yield provider

        daemon = AutoscalerDaemon(cloud, options, profile=profile, amend_template=expects)
        cluster = RunningCluster(lab, lab.client(), daemon)
        cluster.watch()
        task = led(cluster, lab.client()) if leads else None
        try:
            yield cluster
        finally:
            if task is not None:
                await ended(task)


def led(cluster: RunningCluster, client: Client) -> asyncio.Task[None]:
    """Let the autoscaler begin."""
    return asyncio.ensure_future(cluster.autoscaler.lead(client))


async def ended(task: asyncio.Task[None]) -> None:
    """End it, and say if it had failed before."""
    failed = task.done()
    task.cancel()
    (error,) = await asyncio.gather(task, return_exceptions=True)
    if failed and error is not None:
        raise error


@asynccontextmanager
async def live_running_cluster(
    spec: ClusterSpec, folder: Path, options: AutoscalerOptions, *, profile: Profile | None = None
) -> AsyncIterator[RunningCluster]:
    """A cluster on the wall clock: the API server over HTTPS, the cloud over gRPC and TLS."""
    path = folder / "kubeconfig"
    async with AsyncExitStack() as stack:
        lab = await stack.enter_async_context(LiveLab(spec, ServerConfig(kubeconfig=path)))
        client = await stack.enter_async_context(connect(path))
        daemon = AutoscalerDaemon(over_tls(lab, folder), options, profile=profile)
        leading = [schedulers(profile).lead, daemon.lead]
        tasks = [asyncio.ensure_future(one(client)) for one in leading]
        cluster = RunningCluster(lab, client, daemon)
        cluster.watch()
        try:
            yield cluster
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def over_tls(lab: Lab, folder: Path) -> OpenCloud:
    """The simulated cloud, asked over gRPC and TLS."""

    @asynccontextmanager
    async def cloud(_: Client) -> AsyncIterator[Provider]:
        async with ServedProvider(lab.simulation.provider, "tls", folder) as provider:
            yield provider

    return cloud


def all_run(count: int) -> Callable[[dict[str, Pod]], bool]:
    """Whether there are so many pods, and all of them run."""

    def holds(pods: dict[str, Pod]) -> bool:
        return [pod.status.phase for pod in pods.values()] == ["Running"] * count

    return holds
