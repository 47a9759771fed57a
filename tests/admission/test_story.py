"""Story 5 from the door on: pods ask for the gate, the webhook gives it, the scheduler takes it
away when their queue has room. The same over HTTPS, and on any cluster of KUBECONFIG_E2E whose API
server can reach this machine at 127.0.0.1."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bayplan.admission.certificates import SECRETS
from bayplan.admission.configurations import MUTATING, VALIDATING
from bayplan.client import Client, Untyped, deletion
from bayplan.client.errors import ApiError, InvalidError, NotFoundError
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from tests.admission.test_process import DIRECT, Webhook, webhook
from tests.scheduler.batch.objects import OPT_IN, group, install_kinds, queue
from tests.scheduler.batch.queue_stories import QUEUE, gated, scale_up_pods
from tests.scheduler.running_scheduler import node, scheduling
from tests.scheduler.running_scheduler import pod as plain_pod

pytestmark = pytest.mark.whole


NAME = "bayplan-e2e-webhook"


def asking(namespace: str, name: str, cpu: str, **annotations: str) -> Untyped:
    """A pod as people write it: it asks for the gate, and has none."""
    made = plain_pod(namespace, name, cpu)
    said = {f"scheduling.volcano.sh/{key}-name": value for key, value in annotations.items()}
    return {
        **made,
        "metadata": {"namespace": namespace, "name": name, "annotations": OPT_IN | said},
    }


@pytest.fixture
async def registered_webhook(client: Client, tmp_path: Path) -> AsyncIterator[Webhook]:
    """A webhook that answers for the cluster; nothing of it is left afterwards."""
    kubeconfig = Path(os.environ.get("KUBECONFIG_E2E") or tmp_path / "kubeconfig")
    await install_kinds(client)
    options = (*DIRECT, "--service", f"kube-system/{NAME}")
    async with _cleared(client), webhook(kubeconfig, *options) as running:
        await running.said("serving a certificate")
        await _asked(client)
        yield running


@asynccontextmanager
async def _cleared(client: Client) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for resource, key in (
            (MUTATING, (NAME,)),
            (VALIDATING, (NAME,)),
            (SECRETS, ("kube-system", NAME)),
        ):
            with suppress(NotFoundError):
                await client.delete(resource, *key)


async def _asked(client: Client) -> None:
    """Wait until the API server asks: it hears of configurations by and by."""
    absurd = queue("bayplan-absurd", {"cpu": "-1"})
    while True:
        try:
            await client.create(absurd, dry_run=True)
        except InvalidError:
            return
        await client.clock.sleep(0.05)


async def test_the_gate_is_given_and_taken(
    client: Client, namespace: str, registered_webhook: Webhook
) -> None:
    await client.create(queue(QUEUE, {"cpu": "2"}))
    await client.create(node("bayplan-0", cpu="2"))
    async with scheduling(client) as it:
        await client.create(asking(namespace, "first", "2", queue=QUEUE))
        await it.placed(namespace, "first")
        made = await client.create(asking(namespace, "second", "2", queue=QUEUE))
        spec = made["spec"]
        assert isinstance(spec, dict)
        assert spec["schedulingGates"] == [{"name": QUEUE_SCHEDULING_GATE}]
        await client.create(plain_pod(namespace, "plain", "1"))
        await it.until(lambda: scale_up_pods(it, namespace) == {"plain"})
        assert gated(it, namespace) == {"second"}
        await client.delete(Pod, namespace, "plain", options=deletion(grace=0))
        await client.delete(Pod, namespace, "first", options=deletion(grace=0))
        await it.placed(namespace, "second")


async def test_a_gang_comes_in_gated_and_goes_whole(
    client: Client, namespace: str, registered_webhook: Webhook
) -> None:
    await client.create(queue(QUEUE, {"cpu": "3"}))
    await client.create(node("bayplan-0", cpu="1"))
    async with scheduling(client) as it:
        await client.create(asking(namespace, "other", "1", queue=QUEUE))
        await it.placed(namespace, "other")
        await client.create(group(namespace, "gang", QUEUE, 3))
        for number in range(3):
            await client.create(asking(namespace, f"gang-{number}", "1", group="gang"))
        await it.until(lambda: len(gated(it, namespace)) == 3)
        assert scale_up_pods(it, namespace) == set()
        await client.delete(Pod, namespace, "other", options=deletion(grace=0))
        await it.until(lambda: gated(it, namespace) == set())
        await client.create(node("bayplan-1", cpu="2"))
        await it.placed(namespace, *(f"gang-{number}" for number in range(3)))


async def test_what_makes_no_sense_is_refused(
    client: Client, namespace: str, registered_webhook: Webhook
) -> None:
    refused: dict[str, Untyped] = {
        "is not a whole number": queue("bayplan-a", {"nvidia.com/gpu": "500m"}),
        "which does not exist": queue("bayplan-a", parent="bayplan-nobody"),
        "does not exist": group(namespace, "g", "bayplan-nobody"),
        "name of a queue": asking(namespace, "p", "1", queue="Not A Queue"),
    }
    for said, made in refused.items():
        with pytest.raises(ApiError, match=said):
            await client.create(made)
