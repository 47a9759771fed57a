"""The autoscaler's manifest grants all that the autoscaler does, and no more than it needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import connect
from bayplan.client.daemon import elect
from bayplan.client.errors import ForbiddenError
from bayplan.client.resources import LEASES
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.nodes import Node
from bayplan.lab import LiveLab
from tests.autoscaler.running_autoscaler import RunningCluster, over_tls
from tests.deploy.manifests import made
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


ACCOUNT = "system:serviceaccount:kube-system:bayplan-autoscaler"
TOKEN = "bayplan-test"
CLUSTER = b"""
seed: 1
csiDrivers: [{name: disk.csi.example.com}]
instanceTypes: [{name: a, cpu: 4, memory: 16Gi}]
nodeGroups:
  - {name: g, instanceType: a, count: 1, max: 5, start: 0.2,
     drivers: [{name: disk.csi.example.com, limit: 8}]}
faults: [{kind: no-driver, driver: disk.csi.example.com, at: 0s, for: 1h}]
"""


async def test_what_the_manifest_grants_is_enough_and_not_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, path = tmp_path / "tokens.csv", tmp_path / "kubeconfig"
    tokens.write_text(f"{TOKEN},{ACCOUNT},1\n")
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac")
    lab = LiveLab(parse_cluster(CLUSTER, "cluster", tmp_path), config)
    async with lab, connect(path) as admin:
        for one in made("autoscaler"):
            await admin.create(one)
        restricted = tmp_path / "restricted"
        restricted.write_text(_as_account(path))
        async with connect(restricted) as client:
            options = AutoscalerOptions(scan_interval=0.2, csi_driver_startup_time=1.0)
            daemon = AutoscalerDaemon(over_tls(lab, tmp_path), options)
            main = asyncio.ensure_future(elect(daemon.lead, "cluster-autoscaler")(client, "me"))
            simulating = asyncio.ensure_future(lab.run())
            cluster = RunningCluster(lab, admin, daemon)
            await _until_removed(lab)
            main.cancel()
            await asyncio.gather(main, return_exceptions=True)
            assert await cluster.event_notes("CSIDriverMissing")
            assert "featureGates" in await cluster.status()
            lease = await admin.get(LEASES, "kube-system", "cluster-autoscaler")
            assert lease.spec.lease_transitions == 0
            with pytest.raises(ForbiddenError):
                await client.delete(Node, "g-1")
            lab.stop()
            await simulating
    assert "forbidden" not in caplog.text


async def _until_removed(lab: LiveLab) -> None:
    """Wait until a node whose driver did not come is tainted and given back."""
    gone = asyncio.Event()
    cloud = lab.simulation.cloud
    cloud.listeners.append(lambda name: gone.set() if name not in cloud.instances else None)
    await asyncio.wait_for(gone.wait(), PATIENCE)


def _as_account(kubeconfig: Path) -> str:
    """The kubeconfig with the account's token in place of the administrator's."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": TOKEN}
    return str(yaml.safe_dump(config))
