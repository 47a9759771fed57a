"""`bayplan manifests`, applied by kubectl to a server with RBAC: all daemons run from what the
server has, with nothing but their own accounts, and stories 1 and 5 come true.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bayplan.client import Client, Informers, connect, merge
from bayplan.client.resources import LEASES
from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import Queue
from bayplan.lab import LiveLab
from bayplan.lab.admission import with_queue_kinds
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, Tls, serve
from tests.accounts import write_tokens
from tests.autoscaler.running_autoscaler import story
from tests.deploy.audit import Audit
from tests.deploy.manifests import printed
from tests.deploy.pods import Machine, machine
from tests.kubectl import KUBECTL, needs_kubectl

pytestmark = [
    pytest.mark.whole,
    needs_kubectl,
    pytest.mark.xdist_group("daemons from manifests"),  # so that they are not all there at once
]
PARTS = ("scheduler", "autoscaler", "webhook", "node-limits")
ACCOUNTS = tuple(f"bayplan-{one}" for one in PARTS)
SYSTEM = "kube-system"
WITHIN = 300.0
QUICK = (
    "--set=scheduler.schedulerNames=[bayplan,default-scheduler]",
    "--set=autoscaler.extraArgs=[--scan-interval=0.5s]",
)


@dataclass(slots=True)
class DeployedCluster:
    """A cluster in which everything of ours runs as it does in production."""

    lab: LiveLab
    client: Client
    machine: Machine
    audit: Audit

    async def until(self, pods: Any) -> None:
        """Let time go by until that holds of the pods of people."""
        news = asyncio.Event()
        async with Informers(self.client) as informers, asyncio.timeout(WITHIN):
            found = informers.of(Pod)
            found.on_change(lambda _: news.set())
            while not pods([one for one in found.objects.values() if one.namespace != SYSTEM]):
                news.clear()
                await news.wait()

    async def nodes(self) -> list[str]:
        return sorted(one.name for one in (await self.client.list(Node)).items)


async def kubectl(kubeconfig: Path, text: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(KUBECTL, "--kubeconfig", str(kubeconfig), *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(text.encode()), 60)
    assert process.returncode == 0, out.decode()
    return out.decode()


@asynccontextmanager
async def port(spec: ClusterSpec, folder: Path) -> AsyncIterator[DeployedCluster]:
    path, audit = folder / "kubeconfig", Audit()
    tokens = write_tokens(folder, ACCOUNTS)
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac", audit=audit)
    async with LiveLab(spec, config) as lab, connect(path) as client, _cloud(lab, client):
        said = await kubectl(path, printed("crds", "reader", *PARTS, *QUICK), "apply", "-f", "-")
        assert "deployment.apps/bayplan-scheduler created" in said
        async with machine(client, path, folder) as pods:
            await pods.run(SYSTEM)
            await pods.serve(SYSTEM, "bayplan-webhook")
            running = asyncio.ensure_future(lab.run())
            yield DeployedCluster(lab, client, pods, audit)
            lab.stop()
            await running
            await pods.until("liveness")
            assert set(await pods.stop()) == {0}
    assert not audit.refused


@asynccontextmanager
async def _cloud(lab: LiveLab, client: Client) -> AsyncIterator[None]:
    """The simulated cloud over TLS, and the Secret by which the autoscaler finds it."""
    now = datetime.now(UTC)
    authority = CertificateAuthority.create(now)
    pair = authority.server_pair(["127.0.0.1"], now)
    places = ListenAddresses(host="127.0.0.1", tls=Tls(pair.certificate, pair.key))
    async with serve(lab.simulation.provider, places) as number:
        said = f"address: 127.0.0.1:{number}\ncacert: ca.crt\n".encode()
        files = {"cloud-config": said, "ca.crt": authority.pair.certificate}
        data = {name: base64.b64encode(one).decode() for name, one in files.items()}
        meta = {"namespace": SYSTEM, "name": "bayplan-cloud"}
        await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
        yield


def all_run(count: int) -> Any:
    return lambda pods: [one.status.phase for one in pods] == ["Running"] * count


async def test_story_1_attach_limit_reached(tmp_path: Path) -> None:
    soon = ("instanceType: large", "instanceType: large\n    start: 0.5")
    at_once = ("limit: 8", "limit: 8, delay: 0.5")
    spec = story("1-attach-limit-reached", soon, at_once, ("at: 5m", "at: 8s"))
    async with port(spec, tmp_path) as it:
        await it.until(all_run(36))
        assert await it.nodes() == [f"workers-{number}" for number in range(1, 6)]
        assert len(it.lab.simulation.cloud.instances) == 5
        reasons = {one.reason for one in (await it.client.list(Event)).items}
        assert {"Scheduled", "FailedScheduling", "TriggeredScaleUp"} <= reasons
        for name in ("bayplan-scheduler", "cluster-autoscaler", "bayplan-node-limits"):
            assert (await it.client.get(LEASES, SYSTEM, name)).spec.lease_transitions == 0
        assert len(it.machine.pods) == 2 * len(PARTS)


async def test_story_5_queue_says_not_yet(tmp_path: Path) -> None:
    """The pods ask for their gate; the webhook gives it."""
    spec = story(
        "5-queue-says-not-yet",
        ("instanceType: medium", "instanceType: medium\n    start: 0.5"),
        # Our own daemons are pods as well, and want a core of the first node.
        ("cpu: 4", "cpu: 5"),
        ("at: 10s", "at: 4s"),
        ("runs-for: 10m", "runs-for: 2h"),
    )
    async with port(with_queue_kinds(spec), tmp_path) as it:
        await it.until(
            lambda pods: len(pods) == 12 and all(one.spec.scheduling_gates for one in pods)
        )
        assert await it.nodes() == ["workers-1"]
        more = merge({"spec": {"capability": {"cpu": "36"}}})
        await it.client.patch(Queue, "research", change=more)
        await it.until(all_run(12))
        assert len(await it.nodes()) == 12
        assert len(it.lab.simulation.cloud.instances) == 12
