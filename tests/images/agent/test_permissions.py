"""The manifest of a node's agent grants all that it does for images and limits, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bayplan.client import Client, Informers, connect
from bayplan.client.errors import ForbiddenError
from bayplan.deploy.roles import NODE_AGENT
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.images.agent.live import SECRETS
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import RuntimeClass
from tests.accounts import restricted, write_token
from tests.cli.commands import command
from tests.deploy.audit import Audit
from tests.deploy.manifests import made
from tests.images.agent.test_story import NODE, wait_for_event
from tests.images.manager_fixture import FakeCluster, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push
from tests.node.running_agent import EBS_KEY, node
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


ACCOUNT = "system:serviceaccount:kube-system:bayplan-node-agent"
ON: dict[str, Any] = {"nodeAgent": {"enabled": True, "images": True}}
_TRIED = (
    f'User "{ACCOUNT}" cannot delete resource "pods" in API group "" in the namespace "default"'
)
EXPLAINED = {
    ("", "pods", "list"): "a server that does not stream what there is",
    ("", "nodes", "list"): "a server that does not stream what there is",
    ("storage.k8s.io", "csinodes", "list"): "a server that does not stream what there is",
    ("node.k8s.io", "runtimeclasses", "list"): "a server that does not stream what there is",
    ("node.k8s.io", "runtimeclasses", "get"): "a class that came in the same moment as its pod",
    ("events.k8s.io", "events", "patch"): "what is said again",
}


async def test_what_the_manifest_grants_is_enough_and_not_all(
    guarded_registry: Registry, bayplan_socket: str, push: Push, tmp_path: Path
) -> None:
    tokens, path, audit = write_token(tmp_path, ACCOUNT), tmp_path / "kubeconfig", Audit()
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac", audit=audit)
    async with ApiServer(config), connect(path) as admin:
        for one in made("node-agent", **ON):
            if one["kind"] != "DaemonSet":
                await admin.create(one)
        await admin.create(node(NODE, "m5.large"))
        await admin.create(RuntimeClass(metadata=ObjectMeta(name="ws2022"), handler="wcow-2022"))
        (tmp_path / "at").mkdir()
        (tmp_path / "at" / "kubeconfig").write_text(restricted(path).read_text())
        options = ("--images", "--limits", "--node", NODE, "--socket", bayplan_socket)
        state = ("--state-dir", str(tmp_path / "state"))
        async with command(tmp_path / "at", "node-agent", *options, *state):
            await _pulls(admin, push(guarded_registry, "permitted:1").name, guarded_registry.host)
            await wait_for_node_status(admin)
        async with connect(tmp_path / "at" / "kubeconfig") as client:
            await _may_no_more(client)
    granted = {
        (rule.group, resource, verb)
        for rule in NODE_AGENT.cluster
        for resource in rule.resources
        for verb in rule.verbs
    }
    used = {(one.group, one.resource, one.verb) for one in audit.allowed}
    assert granted - used <= set(EXPLAINED)
    assert audit.refused == {_TRIED}


async def _pulls(admin: Client, image: str, host: str) -> None:
    """A pod with a secret gets its image."""
    paper = FakeCluster()
    paper.add_secret("good", host, USER, PASSWORD)
    secret = paper.secrets["default/good"]
    secret.metadata.uid = ""
    await admin.create(secret, SECRETS)
    pod = pod_of(image, "owner", secrets=("good",))
    pod.spec.node_name, pod.metadata.uid = NODE, ""
    await admin.create(pod)
    await wait_for_event(admin, "Pulled", "owner")


async def wait_for_node_status(admin: Client) -> None:
    """The node's status has its images and its attach limits."""
    news = asyncio.Event()
    async with Informers(admin) as informers, asyncio.timeout(PATIENCE):
        nodes = informers.of(Node)
        nodes.on_change(lambda _: news.set())
        while not any(_has_all(one) for one in nodes.objects.values()):
            news.clear()
            await news.wait()


def _has_all(node: Node) -> bool:
    return bool(node.status.images) and EBS_KEY in node.status.allocatable


async def _may_no_more(client: Client) -> None:
    with pytest.raises(ForbiddenError):
        await client.delete(Pod, "default", "owner")
