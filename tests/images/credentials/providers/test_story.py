"""A plugin opens a private registry for pods, end to end; and tokens from an API server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bayplan.client.client import Client, connect
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.images.agent.live import LiveCluster
from bayplan.images.credentials.providers.provider import TokenUnavailableError
from bayplan.images.runtime.objects import PodIdentity
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.pods import Pod
from bayplan.kube.secrets import ServiceAccount
from bayplan.kube.times import timestamp
from tests.client.scripted import Handler, Scripted, refusal
from tests.client.scripted import json as answer_json
from tests.clocks import VirtualClock
from tests.images.credentials.providers.test_providers import TOKENS, PluginFixture
from tests.images.manager_fixture import ManagerFixture, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


POD = PodIdentity("web", "team", "uid-web")


def bench_for(registry: Registry, folder: Path) -> PluginFixture:
    folder.mkdir()
    plugins = PluginFixture(folder)
    login = {"username": USER, "password": PASSWORD}
    plugins.plugin(auth={registry.host: login})
    return plugins


def with_plugins(fixture: ManagerFixture, plugins: PluginFixture, host: str, **more: Any) -> None:
    providers = plugins.providers(matchImages=[host], **more)
    fixture.manager = replace(fixture.manager, providers=providers)


async def test_an_image_of_a_private_registry_is_pulled_by_what_a_plugin_gives(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push, tmp_path: Path
) -> None:
    name = push(guarded_registry, "by-plugin:1").name
    assert (await fixture.waiting(pod_of(name, "before"))).reason == "ErrImagePull"
    plugins = bench_for(guarded_registry, tmp_path / "bin")
    with_plugins(fixture, plugins, guarded_registry.host)
    await fixture.ready(pod_of(name, "web"))
    # What a plugin gives the node is every pod's.
    await fixture.ready(pod_of(name, "other"))
    assert len(plugins.asked()) == 1


async def test_an_image_pulled_for_an_account_is_for_pods_of_that_account(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push, tmp_path: Path
) -> None:
    name = push(guarded_registry, "by-account:1").name
    plugins = bench_for(guarded_registry, tmp_path / "bin")
    with_plugins(fixture, plugins, guarded_registry.host, tokenAttributes=TOKENS)

    def pod(name_: str, account: str) -> Pod:
        made = pod_of(name, name_)
        made.spec.service_account_name = account
        return made

    await fixture.ready(pod("web", "robot"))
    record = json.loads(next((fixture.folder / "image_manager" / "pulled").iterdir()).read_text())
    (mapping,) = record["credentialMapping"].values()
    account = {"uid": "uid-robot", "namespace": "default", "name": "robot"}
    assert mapping == {"kubernetesServiceAccounts": [account]}
    assert (await fixture.ready(pod("same", "robot"))).pulled is False
    assert (await fixture.ready(pod("other", "another"))).pulled is True
    record = json.loads(next((fixture.folder / "image_manager" / "pulled").iterdir()).read_text())
    (mapping,) = record["credentialMapping"].values()
    assert len(mapping["kubernetesServiceAccounts"]) == 2
    assert (await fixture.waiting(pod("none", ""))).reason == "ErrImagePull"


def account() -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name="robot", namespace="team", uid="uid-robot"))


async def test_a_token_is_asked_for_as_the_kubelet_asks(tmp_path: Path) -> None:
    clock = VirtualClock()
    ends = timestamp(clock.now() + timedelta(hours=1))
    given = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "status": {"token": "t0ken", "expirationTimestamp": ends},
    }
    async with Scripted(answer_json(given, 201)) as server, client_of(server, clock) as client:
        token = await LiveCluster(client, {}).token(account(), "registry", POD)
    assert (token.text, token.seconds) == ("t0ken", 3600)
    assert "t0ken" not in repr(token)
    request = server.requests[0]
    assert (request.method, request.path) == (
        "POST",
        "/api/v1/namespaces/team/serviceaccounts/robot/token",
    )
    asked = json.loads(server.bodies[0])
    assert asked["metadata"]["uid"] == "uid-robot"
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web"}
    assert asked["spec"] == {"audiences": ["registry"], "boundObjectRef": bound}


def client_of(server: Scripted, clock: VirtualClock) -> Client:
    return Client(server.access, clock=clock)


@pytest.mark.parametrize(
    "handler",
    [refusal(403, "Forbidden"), refusal(404, "NotFound"), answer_json({"status": {}}, 201)],
)
async def test_a_server_that_gives_no_token_is_named(handler: Handler) -> None:
    clock = VirtualClock()
    async with Scripted(handler) as server, client_of(server, clock) as client:
        with pytest.raises(TokenUnavailableError, match="team/robot"):
            await asyncio.wait_for(LiveCluster(client, {}).token(account(), "a", POD), PATIENCE)


async def test_the_embedded_server_has_accounts_or_says_so(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=kubeconfig)), connect(kubeconfig) as client:
        cluster = LiveCluster(client, {})
        with pytest.raises(TokenUnavailableError, match="team/robot"):
            await cluster.service_account("team", "robot")
        with pytest.raises(TokenUnavailableError, match="team/robot"):
            await cluster.token(account(), "registry", POD)
