"""The manifest for Cluster API grants all that this provider does, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayplan.autoscaler.providers import ProviderOptions
from bayplan.autoscaler.providers.declared.sources import NODE_GROUPS
from bayplan.autoscaler.providers.registry import open_provider
from bayplan.client import Client, Untyped, connect
from bayplan.client.errors import ForbiddenError
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.nodegroups import NodeRef
from tests.accounts import restricted, write_token
from tests.admission.manifests import CRDS, documents
from tests.autoscaler.providers.clusterapi.capi import INFRASTRUCTURE, MIN, NAMESPACE, SIZED, Capi
from tests.autoscaler.providers.clusterapi.providers import node, seen
from tests.deploy.manifests import made

pytestmark = pytest.mark.whole


ACCOUNT = "system:serviceaccount:kube-system:bayplan-autoscaler"
WORKERS = "MachineDeployment/default/workers"


async def test_what_the_manifests_grant_is_enough_and_not_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, path = write_token(tmp_path, ACCOUNT), tmp_path / "kubeconfig"
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac")
    async with ApiServer(config), connect(path) as admin:
        for one in made("autoscaler", "autoscaler-clusterapi"):
            await admin.create(one)
        for one in documents(CRDS / "nodegroups.yaml"):
            await admin.create(one)
        async with connect(restricted(path)) as client:
            await _trades(Capi(admin), client)
            with pytest.raises(ForbiddenError):
                await client.delete(Capi(client).of("MachineDeployment"), NAMESPACE, "workers")
    assert "forbidden" not in caplog.text


async def _trades(capi: Capi, client: Client) -> None:
    """Buying, giving back, a failure at the minimum, a template, a NodeGroup's status."""
    await capi.install()
    ref = {"apiVersion": f"{INFRASTRUCTURE}/v1", "kind": "Template", "name": "t"}
    await capi.make(
        "MachineDeployment",
        "workers",
        2,
        {**SIZED, MIN: "1"},
        template={"spec": {"infrastructureRef": ref}},
    )
    meta = {"metadata": {"namespace": NAMESPACE, "name": "t"}}
    await capi.client.create({**meta, "apiVersion": f"{INFRASTRUCTURE}/v1", "kind": "Template"})
    named: Untyped = {"metadata": {"name": "workers"}, "spec": {"id": WORKERS}}
    await capi.client.create(named, NODE_GROUPS)
    await capi.settle()
    async with open_provider(ProviderOptions("clusterapi"), client) as provider:
        await provider.refresh()
        await provider.template(WORKERS)
        await provider.increase(WORKERS, 1)
        await provider.decrease_target(WORKERS, 1)
        await provider.delete_nodes(WORKERS, [node("workers-1-1")])
        await capi.settle()
        await capi.client.delete(capi.of("Machine"), NAMESPACE, "workers-1-2")
        await capi.settle(boot=False)
        await capi.fail("workers-1-3", "no")
        await seen(provider, WORKERS, errors=1)
        await provider.delete_nodes(WORKERS, [NodeRef("failed-machine-default_workers-1-3")])
        item: Any = await capi.client.get(NODE_GROUPS, "workers")
        assert item["status"]["conditions"][0]["status"] == "True"
