"""The scheduler with the webhook, and without it under both failure policies: nobody is bought for
who waits for quota, and nobody hangs who was let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

import pytest

from bayplan.admission.certificates import CertificateLifetimes, SharedSecret
from bayplan.admission.configurations import Registration
from bayplan.admission.daemon import WebhookDaemon
from bayplan.admission.rules import AdmissionSettings
from bayplan.client import deletion
from bayplan.client.errors import ApiError
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup
from bayplan.lab import VirtualLab
from tests.scheduler.batch.objects import OPT_IN, install_kinds, pod, queue
from tests.scheduler.batch.queue_stories import gated, scale_up_pods
from tests.scheduler.running_scheduler import RunningScheduler, node, scheduling

pytestmark = pytest.mark.virtual
Policy = Literal["Ignore", "Fail"]


class UnreliableWebhook:
    """A webhook that may be down: then it answers no request."""

    def __init__(self, hook: WebhookDaemon) -> None:
        self._hook = hook
        self.is_down = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not self.is_down:
            await self._hook.app(scope, receive, send)


@asynccontextmanager
async def guarded(
    policy: Policy,
) -> AsyncIterator[tuple[VirtualLab, RunningScheduler, UnreliableWebhook]]:
    """A cluster with a queue of one cpu, a node, a webhook and a scheduler."""
    registration = replace(Registration(), policy=policy)
    names = ("bayplan-webhook.kube-system.svc",)
    source = SharedSecret(registration.namespace, registration.name, names, CertificateLifetimes())
    hook = WebhookDaemon(AdmissionSettings(), registration, source)
    door = UnreliableWebhook(hook)
    async with VirtualLab(ClusterSpec(), [hook.lead], webhooks={hook.service: door}) as lab:
        client = lab.client()
        await install_kinds(client)
        await lab.forward(60)
        for one in (queue("team", {"cpu": "1"}), node("n", "4")):
            await client.create(one)
        async with scheduling(client) as it:
            yield lab, it, door


async def ask(it: RunningScheduler, name: str) -> None:
    """Make a pod that asks for the gate, and leave the gate to the webhook."""
    made = pod("default", name, "1", queue="team", gated=False)
    meta = made["metadata"]
    assert isinstance(meta, dict)
    meta["annotations"].update(OPT_IN)
    await it.client.create(made)


async def end(it: RunningScheduler, name: str) -> None:
    await it.client.delete(Pod, "default", name, options=deletion(grace=0))


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
async def test_with_the_webhook_pods_are_gated_and_let_in_by_quota(policy: Policy) -> None:
    async with guarded(policy) as (lab, it, _):
        await ask(it, "first")
        await it.placed("default", "first")
        await ask(it, "second")
        await lab.forward(20)
        assert (gated(it, "default"), scale_up_pods(it, "default")) == ({"second"}, set())
        await end(it, "first")
        await it.placed("default", "second")
        assert len((await it.client.list(PodGroup)).items) >= 1


async def test_without_it_and_ignored_pods_have_no_gate_and_wait_all_the_same() -> None:
    async with guarded("Ignore") as (lab, it, door):
        await ask(it, "first")
        await it.placed("default", "first")
        door.is_down = True
        await ask(it, "second")
        await lab.forward(60)
        assert (gated(it, "default"), scale_up_pods(it, "default")) == (set(), set())
        assert it.node_of("default", "second") == ""
        assert "queue team has no quota left" in it.condition_message("default", "second")
        await end(it, "first")
        await it.placed("default", "second")


async def test_without_it_and_required_nobody_comes_in_and_those_that_are_go_on() -> None:
    async with guarded("Fail") as (lab, it, door):
        await ask(it, "first")
        await it.placed("default", "first")
        await ask(it, "second")
        await lab.forward(5)
        door.is_down = True
        with pytest.raises(ApiError):
            await ask(it, "third")
        await end(it, "first")
        await it.placed("default", "second")
        door.is_down = False
        await ask(it, "third")
        await lab.forward(5)
        assert (gated(it, "default"), scale_up_pods(it, "default")) == ({"third"}, set())
        await end(it, "second")
        await it.placed("default", "third")
