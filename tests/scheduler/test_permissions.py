"""The scheduler's manifest grants all that the scheduler does, and no more than it needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.client import Client, Untyped, connect
from bayplan.client.daemon import elect
from bayplan.client.errors import ForbiddenError
from bayplan.client.resources import EVENTS, LEASES
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import SELECTED_NODE, PersistentVolumeClaim
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.accounts import restricted, write_token
from tests.deploy.manifests import made
from tests.scheduler.batch.objects import install_kinds, queue
from tests.scheduler.batch.objects import pod as pod_of_queue
from tests.scheduler.running_scheduler import RunningScheduler, node, pod
from tests.scheduler.test_first_consumers import CLASS, claim

pytestmark = pytest.mark.whole


ACCOUNT = "system:serviceaccount:kube-system:bayplan-scheduler"


async def test_what_the_manifest_grants_is_enough_and_not_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, path = write_token(tmp_path, ACCOUNT), tmp_path / "kubeconfig"
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac")
    async with ApiServer(config), connect(path) as admin:
        for one in made("scheduler"):
            await admin.create(one)
        async with connect(restricted(path)) as client:
            await _schedules(admin, client)
            with pytest.raises(ForbiddenError):
                await client.delete(Node, "bayplan-a")
    assert "forbidden" not in caplog.text


async def _schedules(admin: Client, client: Client) -> None:
    """Placing, preempting, queues, and claims of first consumers, by an elected leader."""
    await admin.create(node("bayplan-a", cpu="1"))
    await admin.create(_important())
    await admin.create(_waiting_class())
    await admin.create(claim("default", "c"))
    await install_kinds(admin)
    await admin.create(queue("bayplan-team", {"cpu": "1"}))
    daemon = SchedulerDaemon(default_settings())
    main = asyncio.ensure_future(elect(daemon.lead, "bayplan-scheduler")(client, "me"))
    try:
        await daemon.ready.wait()
        it = RunningScheduler(admin, daemon)
        await admin.create(pod("default", "low", cpu="1", terminationGracePeriodSeconds=0))
        await it.placed("default", "low")
        high = pod("default", "high", cpu="1", priorityClassName="bayplan-high")
        await admin.create(high)
        await it.placed("default", "high")
        await admin.create(node("bayplan-b"))
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        await admin.create(pod("default", "stored", volumes=[volume]))
        await it.until(lambda: bool(_selected(it)))
        await admin.create(pod_of_queue("default", "queued", queue="bayplan-team"))
        await it.placed("default", "queued")
        await it.scheduler.batch.status_writer.write_all()
        for recorder in it.scheduler.recorders:
            await recorder.drain()
    finally:
        main.cancel()
        await asyncio.gather(main, return_exceptions=True)
    reasons = {event.reason for event in (await admin.list(EVENTS, "default")).items}
    assert {"Scheduled", "Preempted", "FailedScheduling"} <= reasons
    assert (await admin.get(LEASES, "kube-system", "bayplan-scheduler")).spec.lease_transitions == 0
    assert (await admin.get(Pod, "default", "high")).spec.node_name == "bayplan-a"
    (group,) = (await admin.list(PodGroup, "default")).items
    assert group.spec.queue == "bayplan-team"
    assert (await admin.get(Queue, "bayplan-team")).status.allocated["cpu"] == "1"


def _selected(it: RunningScheduler) -> str:
    found = it.live.cached(PersistentVolumeClaim).get("default/c")
    return "" if found is None else found.metadata.annotations.get(SELECTED_NODE, "")


def _important() -> Untyped:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": "bayplan-high"}, "value": 1000}


def _waiting_class() -> Untyped:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": "example.com/made-by-test",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
