"""Stories 2 and 8, the same over HTTPS, in virtual time, and on any cluster of KUBECONFIG_E2E.

A plain kube-apiserver without controllers is enough for those that are told by hand. Those of the
cluster files need what is simulated around the embedded server, and never leave it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.client import Client, Informers, connect
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster, read_cluster
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.lab import Lab, LiveLab, VirtualLab
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.patience import PATIENCE
from tests.scheduler import scheduler_stories

pytestmark = pytest.mark.whole


EXAMPLES = Path(__file__).parents[2] / "examples" / "stories"
NOBODY = parse_cluster(b"seed: 1\n", "empty", EXAMPLES)
Pods = dict[str, Pod]


async def test_no_driver_here_over_https(client: Client, namespace: str) -> None:
    await scheduler_stories.no_driver_here(client, namespace)


@pytest.mark.virtual
async def test_no_driver_here_in_virtual_time() -> None:
    async with VirtualLab(NOBODY) as lab:
        await scheduler_stories.no_driver_here(lab.client(), "default")


async def test_everything_off_over_https(client: Client, namespace: str) -> None:
    await scheduler_stories.everything_off(client, namespace)


@pytest.mark.virtual
async def test_everything_off_in_virtual_time() -> None:
    async with VirtualLab(NOBODY) as lab:
        await scheduler_stories.everything_off(lab.client(), "default")


async def test_old_limits_off_over_https(client: Client, namespace: str) -> None:
    await scheduler_stories.old_limits_off(client, namespace)


@pytest.mark.virtual
async def test_old_limits_off_in_virtual_time() -> None:
    async with VirtualLab(NOBODY) as lab:
        await scheduler_stories.old_limits_off(lab.client(), "default")


@pytest.mark.virtual
async def test_the_cluster_file_of_story_2_in_virtual_time() -> None:
    daemon = _daemon()
    async with VirtualLab(_spec("2-no-driver-here"), [daemon.lead]) as lab:
        await _all_run_where_they_can(lab, lab.client())


async def test_the_cluster_file_of_story_2_over_https(tmp_path: Path) -> None:
    daemon, path = _daemon(), tmp_path / "kubeconfig"
    lab = LiveLab(_spec("2-no-driver-here"), ServerConfig(kubeconfig=path))
    async with lab, connect(path) as client, _leading(daemon, client):
        await _all_run_where_they_can(lab, client)


@pytest.mark.virtual
@pytest.mark.parametrize("held_back", [True, False])
async def test_the_cluster_file_of_story_8_shows_both_behaviours(held_back: bool) -> None:
    gates = FeatureGates({"VolumeLimitScaling": held_back})
    daemon = _daemon(Profile(gates=gates))
    async with VirtualLab(_spec("8-everything-off"), [daemon.lead]) as lab:
        await lab.run(300)
        pods = (await lab.client().list(Pod, "default")).items
        waiting = [_said(one) for one in pods if not one.spec.node_name]
        assert waiting
        # With the gate they wait for a node that can. Without it they are sent where no volume can
        # be made for them, over and over.
        held = [said for said in waiting if "CSI driver is not installed on the node" in said]
        sent = [said for said in waiting if "no volume was made for claim" in said]
        assert waiting == (held if held_back else sent)


def _said(pod: Pod) -> str:
    return next(one.message for one in pod.status.conditions if one.type == "PodScheduled")


async def _all_run_where_they_can(lab: Lab, client: Client) -> None:
    """All pods run, those with volumes where their driver is; nobody wrote a rule."""
    pods = await _until(lab, client, lambda found: len(found) == 26 and _all_run(found))
    with_volumes = {pod.spec.node_name for pod in pods.values() if _has_claims(pod)}
    others = {pod.spec.node_name for pod in pods.values() if not _has_claims(pod)}
    assert with_volumes == {"workers-1", "workers-2"}
    assert "bare-1" in others
    assert all(not node.spec.taints for node in (await client.list(Node)).items)


async def _until(lab: Lab, client: Client, holds: Callable[[Pods], bool]) -> Pods:
    """All pods, once that holds of them."""
    running = asyncio.ensure_future(lab.run(1800))
    news = asyncio.Event()
    async with Informers(client) as informers:
        pods = informers.of(Pod)
        pods.on_change(lambda _: news.set())
        async with asyncio.timeout(1800 if isinstance(lab, VirtualLab) else PATIENCE):
            while not holds(dict(pods.objects)):
                news.clear()
                await news.wait()
        found = dict(pods.objects)
    lab.stop()
    await running
    return found


def _all_run(pods: Pods) -> bool:
    return all(pod.status.phase == "Running" for pod in pods.values())


def _has_claims(pod: Pod) -> bool:
    return any(volume.persistent_volume_claim is not None for volume in pod.spec.volumes)


def _daemon(profile: Profile | None = None) -> SchedulerDaemon:
    return SchedulerDaemon(default_settings(["default-scheduler"]), profile=profile)


@asynccontextmanager
async def _leading(daemon: SchedulerDaemon, client: Client) -> AsyncIterator[None]:
    task = asyncio.ensure_future(daemon.lead(client))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _spec(story: str) -> ClusterSpec:
    return read_cluster(EXAMPLES / f"{story}.yaml")
