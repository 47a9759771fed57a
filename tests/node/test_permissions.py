"""The manifests of agents of attach limits grant all that is needed, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.client import Client, connect, merge
from bayplan.client.daemon import elect
from bayplan.client.errors import ForbiddenError
from bayplan.client.resources import LEASES
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.node.agent import NAME, LimitsAgent
from bayplan.node.decision import AttachLimitSettings
from tests.accounts import restricted, write_token
from tests.deploy.manifests import made
from tests.node.running_agent import EBS_KEY, RunningAgent, csinode, node, publishing, seen

pytestmark = pytest.mark.whole


async def test_what_the_deployment_grants_is_enough_and_not_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kubeconfig"
    async with _server(tmp_path, "bayplan-node-limits"), connect(path) as admin:
        await _install(admin, "node-limits")
        await admin.create(node("a", "zz9.plural"))
        async with connect(restricted(path)) as client:
            agent = LimitsAgent(AttachLimitSettings)
            main = asyncio.ensure_future(elect(agent.lead, NAME)(client, "me"))
            try:
                at = RunningAgent(admin, agent, None, AttachLimitSettings())  # type: ignore[arg-type]
                await at.publishes("a", {EBS_KEY: 26})
                await seen(admin, Event, lambda one: one.reason == "UnknownInstanceType")
            finally:
                main.cancel()
                await asyncio.gather(main, return_exceptions=True)
            assert (await admin.get(LEASES, "kube-system", NAME)).spec.lease_transitions == 0
            await _may_no_more(client)
    assert "forbidden" not in caplog.text


async def test_what_the_daemonset_grants_is_enough_and_not_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kubeconfig"
    async with _server(tmp_path, "bayplan-node-agent"), connect(path) as admin:
        await _install(admin, "node-agent")
        await admin.create(node("a", "m5.large"))
        async with connect(restricted(path)) as client:
            async with publishing(admin, node="a", by=client) as at:
                await at.publishes("a", {EBS_KEY: 26})
                await seen(admin, Event, lambda one: one.reason == "AttachLimitPublished")
            await _may_no_more(client)
    assert "forbidden" not in caplog.text


async def test_without_leave_to_write_csinodes_nodes_are_published_all_the_same(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kubeconfig"
    async with _server(tmp_path, "bayplan-node-agent"), connect(path) as admin:
        await _install(admin, "node-agent")
        await admin.create(node("a", "m5.large"))
        await admin.create(csinode("a", ebs_csi_aws_com=None))
        rules = AttachLimitSettings(csi_nodes=True)
        async with (
            connect(restricted(path)) as client,
            publishing(admin, rules, by=client) as at,
        ):
            await at.publishes("a", {EBS_KEY: 26})
            assert at.count("errors_total", kind="CSINode", reason="Forbidden") >= 1
            assert at.count("waiting") == 1


async def test_once_leave_is_given_what_was_forbidden_is_done(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with _server(tmp_path, "bayplan-node-agent"), connect(path) as admin:
        await _install(admin, "node-agent", without="nodes/status")
        await admin.create(node("a", "m5.large"))
        async with connect(restricted(path)) as client, publishing(admin, by=client) as at:
            assert at.count("errors_total", kind="Node", reason="Forbidden") >= 1
            await _grant(admin)
            await at.publishes("a", {EBS_KEY: 26})


def _server(folder: Path, account: str) -> ApiServer:
    tokens = write_token(folder, f"system:serviceaccount:kube-system:{account}")
    path = folder / "kubeconfig"
    return ApiServer(ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac"))


async def _install(admin: Client, name: str, without: str = "") -> None:
    for one in made(name):
        kept = [rule for rule in one.get("rules", ()) if without not in rule["resources"]]
        await admin.create({**one, "rules": kept} if "rules" in one else one)


async def _grant(admin: Client) -> None:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "more"}}
    rule = {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
    await admin.create({**kind, "kind": "ClusterRole", "rules": [rule]})
    account = {"name": "bayplan-node-agent", "namespace": "kube-system", "kind": "ServiceAccount"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "more"}
    binding = {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [account]}
    await admin.create({**kind, **binding})


async def _may_no_more(client: Client) -> None:
    with pytest.raises(ForbiddenError):
        await client.delete(Node, "a")
    with pytest.raises(ForbiddenError):
        await client.patch(Node, "a", change=merge({"spec": {"unschedulable": True}}))
