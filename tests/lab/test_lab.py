"""A daemon runs unchanged over HTTPS and in virtual time: election, informers, binds, a CRD, a
webhook."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn

from bayplan.base.clock import WallClock
from bayplan.client import Client, Informers, untyped
from bayplan.client.config import from_kubeconfig
from bayplan.client.errors import ServerFaultError, UnreachableError
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import server_context
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.kube.coordination import Lease
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import Namespace
from bayplan.lab import DaemonFailedError, Lab, LiveLab, VirtualLab, run_virtually
from tests.clocks import in_virtual_time
from tests.lab.placer import POLICIES, STAMP, lead, main, stamping, webhook
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


CLUSTER = """
seed: 3
instanceTypes: [{name: a, cpu: 64, memory: 256Gi}]
nodeGroups: [{name: g, instanceType: a, count: 3, start: 0.1}]
"""
DAY = (
    CLUSTER
    + """
workloads:
  - arrivals: {count: 100, over: 20h}
    manifest:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: work}
      spec:
        ttlSecondsAfterFinished: 600
        template:
          metadata: {annotations: {simulation.bayplan.io/runs-for: 10m}}
          spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""
)
REPLICAS: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 6,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


HOOKS = untyped(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)


class Cluster(NamedTuple):
    """A cluster under test, its client, and the configuration of the webhook."""

    lab: Lab
    client: Client
    webhook: dict[str, Any]


class Later(WallClock):
    """The wall's clock, some years later."""

    def now(self) -> datetime:
        return super().now().replace(year=2040)


def spec(text: str = CLUSTER) -> ClusterSpec:
    return parse_cluster(text.encode(), "cluster.yaml", Path())


async def all_run(client: Client, client_config: dict[str, Any]) -> tuple[int, str]:
    """Let six pods be stamped, placed and started; what the daemon says, and who leads."""
    await client.create(webhook(client_config))
    await client.create(REPLICAS)
    running = asyncio.Event()
    async with Informers(client) as informers:
        pods = informers.of(Pod)
        pods.on_change(lambda _: running.set() if _running(pods.objects.values()) else None)
        await running.wait()
        for pod in pods.objects.values():
            assert pod.metadata.annotations[STAMP].startswith("system:")
    policy: Any = await client.get(POLICIES, "all")
    lease = await client.get(Lease, "kube-system", "test-placer")
    return policy["status"]["placed"], str(lease.spec.holder_identity)


def _running(pods: Any) -> bool:
    return [pod.status.phase for pod in pods] == ["Running"] * 6


@asynccontextmanager
async def served(lab: LiveLab) -> AsyncIterator[dict[str, Any]]:
    """The webhook over HTTPS; how to configure it."""
    config = uvicorn.Config(stamping, log_config=None, lifespan="off", port=0)
    config.load()
    config.ssl = server_context(lab.server.authority, ["127.0.0.1"], lab.clock.now())
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it has no event for that
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    ca = base64.b64encode(lab.server.authority.pair.certificate).decode()
    try:
        yield {"url": f"https://127.0.0.1:{port}/stamp", "caBundle": ca}
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def over_https(folder: Path) -> AsyncIterator[Cluster]:
    """A client over HTTPS of a cluster in real time."""
    path = folder / "kubeconfig"
    async with (
        LiveLab(spec(), ServerConfig(kubeconfig=path)) as lab,
        served(lab) as client_config,
        Client(from_kubeconfig([path])) as client,
    ):
        yield Cluster(lab, client, client_config)


@asynccontextmanager
async def in_process() -> AsyncIterator[Cluster]:
    """A client in the process of a cluster in virtual time."""
    async with VirtualLab(spec(), webhooks={"https://stamps.test": stamping}) as lab:
        yield Cluster(lab, lab.client(), {"url": "https://stamps.test/stamp"})


@pytest.fixture
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A running cluster, over HTTPS in real time or, where the test is in virtual time, in it."""
    async with in_process() if in_virtual_time(request) else over_https(tmp_path) as found:
        running = asyncio.create_task(found.lab.run())
        yield found
        found.lab.stop()
        await running


@pytest.mark.wall
@pytest.mark.virtual
async def test_a_daemon_is_elected_places_pods_and_releases_its_lease(cluster: Cluster) -> None:
    client = cluster.client
    daemon = asyncio.create_task(main(client, "placer"))
    assert await asyncio.wait_for(all_run(client, cluster.webhook), PATIENCE) == (6, "placer")
    daemon.cancel()
    await asyncio.gather(daemon, return_exceptions=True)
    lease = await client.get(Lease, "kube-system", "test-placer")
    assert lease.spec.holder_identity == ""  # released, so that the next need not wait


async def test_a_live_cluster_has_the_time_of_its_clock() -> None:
    made = asyncio.Event()
    async with LiveLab(spec(), ServerConfig(clock=Later())) as lab:
        lab.plane.store.listeners.append(
            lambda change: made.set() if change.entry.key.storage == "nodes" else None
        )
        simulating = asyncio.create_task(lab.run())
        await asyncio.wait_for(made.wait(), PATIENCE)
        lab.stop()
        await simulating
        (node, *_) = (await lab.client().list(Node)).items
        assert str(node.metadata.creation_timestamp).startswith("2040")


@pytest.mark.virtual
async def test_a_webhook_behind_a_service_and_one_that_nobody_answers() -> None:
    async with VirtualLab(spec(), webhooks={"shop/stamps": stamping}) as lab:
        client = lab.client("somebody", ["system:masters"])
        service = {"namespace": "shop", "name": "stamps", "path": "/x"}
        await client.create(webhook({"service": service}))
        pod: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        made: Any = await client.create(pod)
        assert made["metadata"]["annotations"] == {STAMP: "somebody"}
        await client.delete(HOOKS, "stamps")
        await client.create(webhook({"url": "https://elsewhere.test/"}))
        nobody = "no application in this process serves https://elsewhere.test/"
        with pytest.raises(ServerFaultError, match=nobody):
            await client.create(pod)


def test_a_virtual_day_with_daemons_is_the_same_twice_and_under_two_hash_seeds() -> None:
    code = "from tests.lab.test_lab import print_day; print_day()"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].endswith(b" 100\n")


def print_day() -> None:
    """Run a virtual day and print the log's digest and how many jobs were placed."""
    sys.stdout.write(run_virtually(_day()))


async def _day() -> str:
    webhooks = {"https://stamps.test": stamping}
    async with VirtualLab(spec(DAY), [lead], webhooks=webhooks) as lab:
        client = lab.client()
        await client.create(webhook({"url": "https://stamps.test/stamp"}))
        await lab.run(24 * 3600)
        policy: Any = await client.get(POLICIES, "all")
        return f"{lab.log.digest} {policy['status']['placed']}\n"


@pytest.mark.virtual
async def test_a_daemon_that_fails_fails_the_run() -> None:
    async def failing(client: Client) -> None:
        await client.clock.sleep(60)
        raise ValueError("no")

    async with VirtualLab(spec(), [failing]) as lab:
        with pytest.raises(DaemonFailedError, match="no"):
            await lab.run(3600)
        assert lab.simulation.now() == pytest.approx(60)


@pytest.mark.virtual
async def test_clients_are_who_they_say_and_gone_with_the_lab() -> None:
    async with VirtualLab(spec()) as lab:
        client = lab.client()
        assert (await client.get(Namespace, "default")).metadata.name == "default"
    with pytest.raises(UnreachableError):
        await client.version()


def test_a_virtual_lab_needs_a_virtual_loop() -> None:
    async def on_the_wall() -> None:
        VirtualLab(spec())

    with pytest.raises(TypeError, match="run_virtually"):
        asyncio.run(on_the_wall())
