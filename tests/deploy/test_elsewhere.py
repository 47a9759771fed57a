"""Daemons from manifests with odd values: another namespace, other names, one replica, nothing of
kube-system, each with its own role and no more.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.client import Client, Informers, connect
from bayplan.client.errors import NotFoundError
from bayplan.client.resources import LEASES
from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.pods import Pod
from bayplan.lab import LiveLab
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, Tls, serve
from tests.accounts import write_tokens
from tests.deploy.audit import Audit
from tests.deploy.manifests import printed, printed_objects
from tests.deploy.odd_values import ODD
from tests.deploy.pods import CONFIG_MAPS, SECRETS, machine
from tests.kubectl import needs_kubectl, runner
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.whole,
    needs_kubectl,
    pytest.mark.xdist_group("daemons from manifests"),  # they share ports
]
ELSEWHERE = "a-namespace-of-its-own"
PARTS = ("scheduler", "autoscaler", "webhook", "node-limits")
VALUES: dict[str, Any] = {
    "logFormat": "text",
    "featureGates": "VolumeLimitScaling=false",
    "scheduler": {"replicas": 1, "lease": "another", "schedulerNames": ["a.b-c", "other"]},
    "autoscaler": {
        "replicas": 1,
        "cloudConfigSecret": "another.cloud",
        "extraArgs": ["--scan-interval=0.5s"],
        "expander": "least-nodes,random",
    },
    "webhook": {"replicas": 1, "failurePolicy": "Ignore"},
    "nodeLimits": {"replicas": 1, "limits": "csi: {disk.csi.example.com: {'*': 3}}  # é\n"},
}
CLUSTER = b"""
seed: 1
csiDrivers: [{name: disk.csi.example.com}]
instanceTypes: [{name: a, cpu: 4, memory: 16Gi}]
nodeGroups:
  - {name: g, instanceType: a, count: 1, start: 0.2, drivers: [{name: disk.csi.example.com}]}
"""
POD: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "theirs", "namespace": "default"},
    "spec": {"schedulerName": "a.b-c", "containers": [{"name": "c", "image": "example.com/c:1"}]},
}
OTHERS = {"ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
"""Kinds of operators that are not there."""


async def test_the_server_takes_what_odd_values_give(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)):
        kubectl = runner(path, tmp_path)
        await kubectl("create", "namespace", ELSEWHERE)
        arguments = ("apply", "--server-side", "--dry-run=server", "-f", "-")
        said = await kubectl(*arguments, stdin="".join(_documents(tmp_path)))
    assert "deployment.apps/bayplan-scheduler" in said.out
    assert not said.err


def _documents(folder: Path) -> Iterator[str]:
    file = folder / "values.yaml"
    for values in ODD.values():
        file.write_text(yaml.safe_dump(values, allow_unicode=True))
        for one in printed_objects("-f", str(file), "-n", ELSEWHERE):
            if one["kind"] not in OTHERS:
                yield f"---\n{yaml.safe_dump(one, allow_unicode=True)}"


async def test_all_daemons_run_elsewhere_under_other_names(tmp_path: Path) -> None:
    path, audit, file = tmp_path / "kubeconfig", Audit(), tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES))
    tokens = write_tokens(tmp_path, [f"bayplan-{one}" for one in PARTS], ELSEWHERE)
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac", audit=audit)
    lab = LiveLab(parse_cluster(CLUSTER, "cluster", tmp_path), config)
    now = datetime.now(UTC)
    authority = CertificateAuthority.create(now)
    pair = authority.server_pair(["127.0.0.1"], now)
    here = ListenAddresses(host="127.0.0.1", tls=Tls(pair.certificate, pair.key))
    async with lab, connect(path) as client, serve(lab.simulation.provider, here) as port:
        kubectl = runner(path, tmp_path)
        await kubectl("create", "namespace", ELSEWHERE)
        await client.create(_cloud(port, authority))
        text = printed("crds", *PARTS, "-f", str(file), "-n", ELSEWHERE)
        await kubectl("apply", "--server-side", "-f", "-", stdin=text)
        async with machine(client, path, tmp_path) as pods:
            await pods.run(ELSEWHERE)
            await pods.serve(ELSEWHERE, "bayplan-webhook")
            running = asyncio.ensure_future(lab.run())
            await client.create(POD)
            await _until_it_runs(client, "theirs")
            await _look_for_what_is_kept(client)
            lab.stop()
            await running
            assert set(await pods.stop()) == {0}
    assert not audit.refused
    assert {one.namespace for one in audit.allowed if one.resource in KEPT} == {ELSEWHERE}


KEPT = {"leases", "secrets", "configmaps"}


def _cloud(port: int, authority: CertificateAuthority) -> dict[str, object]:
    said = f"address: 127.0.0.1:{port}\ncacert: ca.crt\n".encode()
    files = {"cloud-config": said, "ca.crt": authority.pair.certificate}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": ELSEWHERE, "name": "another.cloud"},
        "data": {name: base64.b64encode(one).decode() for name, one in files.items()},
    }


async def _until_it_runs(client: Client, name: str) -> None:
    news = asyncio.Event()
    async with Informers(client) as informers, asyncio.timeout(PATIENCE):
        found = informers.of(Pod)
        found.on_change(lambda _: news.set())
        while not any(
            one.name == name and one.status.phase == "Running" for one in found.objects.values()
        ):
            news.clear()
            await news.wait()


async def _look_for_what_is_kept(client: Client) -> None:
    kept: list[tuple[Any, str]] = [
        *((LEASES, one) for one in ("another", "cluster-autoscaler", "bayplan-node-limits")),
        (SECRETS, "bayplan-webhook"),
        (CONFIG_MAPS, "cluster-autoscaler-status"),
    ]
    for resource, name in kept:
        await _until_it_is_there(client, resource, name)


async def _until_it_is_there(client: Client, resource: Any, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                assert await client.get(resource, ELSEWHERE, name)
            except NotFoundError:
                await asyncio.sleep(0.2)
            else:
                return
