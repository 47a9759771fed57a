"""A live cluster on the page, over HTTPS, as far as its reader may read it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import RetryPolicy
from bayplan.client import Client, ClientOptions, Untyped, connect, deletion, merge, untyped
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.pods import Pod
from bayplan.observe.recorder import ClusterRecorder
from bayplan.recordings import (
    ObjectIdentity,
    RecordedObject,
    Recording,
    RecordingWriter,
    identity_of,
)
from bayplan.ui.live import LiveSource, live_page
from bayplan.ui.server import PageServerOptions, serve
from tests.accounts import restricted, write_token
from tests.client.scripted import Scripted
from tests.observe.test_recorder import answering
from tests.patience import PATIENCE
from tests.ui.pages import Browser, apply, tables_of

pytestmark = pytest.mark.whole


READER = "reader"
RBAC = "rbac.authorization.k8s.io"
NODE: Untyped = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "a"}},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


ROLES = untyped(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)


def _rule(resources: list[str]) -> Untyped:
    return {"apiGroups": [""], "resources": resources, "verbs": ["list", "watch"]}


async def _grant(admin: Client, resources: list[str]) -> None:
    named: Untyped = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": READER}}
    await admin.create({**named, "kind": "ClusterRole", "rules": [_rule(resources)]})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": READER}
    account = {"apiGroup": RBAC, "kind": "User", "name": READER}
    binding = {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [account]}
    await admin.create({**named, **binding})


def pod(name: str, **spec: object) -> Untyped:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


async def followed(
    browser: Browser, until: Callable[[dict[str, dict[str, Any]]], bool]
) -> dict[str, dict[str, Any]]:
    """The page's tables, as soon as they are as wanted."""
    state = await browser.state()
    tables = tables_of(state)
    async with asyncio.timeout(PATIENCE):
        stream = browser.changes(state["seq"])
        while not until(tables):
            kind, change = await anext(stream)
            assert kind == "change"
            apply(tables, change)
    return tables


async def _notes(browser: Browser) -> list[str]:
    """What the page says it could not read, as soon as it says so."""
    state = await browser.state()
    found: list[str] = state["notes"]
    async with asyncio.timeout(PATIENCE):
        stream = browser.changes(state["seq"])
        while not found:
            _, change = await anext(stream)
            found = change.get("notes", [])
    return found


class NotifyingWriter(RecordingWriter):
    """A writer that says when it has been told of an object."""

    def __init__(self, path: Path, start: datetime) -> None:
        super().__init__(path, name="test", start=start)
        self.seen: dict[ObjectIdentity, asyncio.Event] = defaultdict(asyncio.Event)

    def record(self, at: float, obj: RecordedObject) -> bool:
        news = super().record(at, obj)
        self.seen[identity_of(obj)].set()
        return news


@asynccontextmanager
async def browsing_page(client: Client) -> AsyncIterator[Browser]:
    """Somebody who looks at the page of the client's cluster."""
    async with (
        live_page(client, LiveSource("test")) as page,
        serve(page, PageServerOptions()) as url,
        aiohttp.ClientSession(url) as session,
    ):
        yield Browser(session)


async def test_a_change_in_the_cluster_reaches_the_page(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        await client.create(NODE)
        await client.create(pod("web"))
        async with (
            browsing_page(client) as browser,
        ):
            tables = await followed(browser, lambda found: "default/web" in found["pods"])
            assert tables["pods"]["default/web"][8] == "waiting"
            await client.bind("default", "web", node="n1")
            tables = await followed(browser, lambda found: found["pods"]["default/web"][1] == "n1")
            assert tables["pods"]["default/web"][8] == "starting"
            await client.delete(Pod, "default", "web", options=deletion(grace=0))
            tables = await followed(browser, lambda found: "default/web" not in found["pods"])
            assert tables["nodes"]["n1"][2] == "a"


async def test_what_may_not_be_read_is_noted_and_the_rest_is_shown(tmp_path: Path) -> None:
    tokens, path = write_token(tmp_path, READER), tmp_path / "kubeconfig"
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac")
    async with ApiServer(config), connect(path) as admin:
        await _grant(admin, ["nodes"])
        await admin.create(NODE)
        async with (
            connect(restricted(path)) as client,
            browsing_page(client) as browser,
        ):
            await followed(browser, lambda found: "n1" in found["nodes"])
            noted = " ".join(await _notes(browser))
            assert "pods cannot be read" in noted
            assert "nodes cannot be read" not in noted
            rules = {"rules": [_rule(["nodes", "pods"])]}
            await admin.patch(ROLES, READER, change=merge(rules))
            await admin.create(pod("late"))
            await followed(browser, lambda found: "default/late" in found["pods"])


async def test_a_kind_at_which_the_server_fails_is_noted_and_the_rest_is_shown() -> None:
    async with (
        Scripted(answering("/csinodes")) as server,
        Client(server.access, ClientOptions(retries=RetryPolicy(attempts=1))) as client,
        browsing_page(client) as browser,
    ):
        await followed(browser, lambda found: "n1" in found["nodes"])
        noted = " ".join(await _notes(browser))
        assert "csinodes.storage.k8s.io cannot be read" in noted


async def test_a_recording_of_a_live_cluster_has_its_changes(tmp_path: Path) -> None:
    path, file = tmp_path / "kubeconfig", tmp_path / "r.bpr"
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        await client.create(NODE)
        opened: asyncio.Future[NotifyingWriter] = asyncio.get_running_loop().create_future()

        def begin(clock: Clock) -> NotifyingWriter:
            opened.set_result(NotifyingWriter(file, clock.now()))
            return opened.result()

        task = asyncio.ensure_future(ClusterRecorder(begin).lead(client))
        async with asyncio.timeout(PATIENCE):
            writer = await opened
            await writer.seen[ObjectIdentity("v1", "Node", "n1")].wait()
            await client.create(pod("web"))
            await writer.seen[ObjectIdentity("v1", "Pod", "default/web")].wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    with Recording(file) as recording:
        start, end = recording.state_at(0.0), recording.state_at(recording.seconds)
    assert ObjectIdentity("v1", "Node", "n1") in start.objects
    assert ObjectIdentity("v1", "Pod", "default/web") not in start.objects
    assert ObjectIdentity("v1", "Pod", "default/web") in end.objects
