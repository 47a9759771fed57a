"""An autoscaler that adds a node for every unschedulable pod."""

from __future__ import annotations

from contextlib import suppress

from bayplan.client import Client, deletion, merge
from bayplan.client.errors import ConflictError, NotFoundError
from bayplan.kube.pods import Pod
from tests.scheduler.running_scheduler import node

EVERY = 5.0
ENDING = 1.0
PATIENCE = 60.0
"""Seconds after which one more is bought for a pod that still waits."""


def cluster_autoscaler_buys(pod: Pod) -> bool:
    """Cluster Autoscaler's rule: no node yet, and PodScheduled is False with Unschedulable."""
    if pod.spec.node_name:
        return False
    scheduled = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
    return (
        scheduled is not None
        and scheduled.status == "False"
        and scheduled.reason == "Unschedulable"
    )


def karpenter_buys(pod: Pod) -> bool:
    """Karpenter's rule: some condition says PodScheduled, Unschedulable; and the pod is pending."""
    failed = any(
        one.type == "PodScheduled" and one.reason == "Unschedulable"
        for one in pod.status.conditions
    )
    return failed and not pod.spec.node_name and not pod.is_terminating and not pod.is_terminal


class NodeProvisioner:
    """Adds nodes, as long as it runs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.bought: list[str] = []
        """The names of the pods for which nodes were bought, one each."""
        self._last: dict[str, float] = {}

    async def run(self) -> None:
        """Look every few seconds."""
        while True:
            for pod in (await self._client.list(Pod)).items:
                if cluster_autoscaler_buys(pod) or karpenter_buys(pod):
                    await self._buy(pod)
            await self._client.clock.sleep(EVERY)

    async def _buy(self, pod: Pod) -> None:
        now, uid = self._client.clock.monotonic(), pod.metadata.uid
        if now - self._last.get(uid, -PATIENCE) < PATIENCE:
            return
        self._last[uid] = now
        cpu = str(pod.spec.containers[0].resources.requests.get("cpu", "1"))
        await self._client.create(node(f"bought-{len(self.bought)}", cpu))
        self.bought.append(pod.name)


async def run_pods(client: Client) -> None:
    """What kubelets do: pods with a node run, and those that are to go are gone in a while."""
    while True:
        for pod in (await client.list(Pod)).items:
            with suppress(NotFoundError, ConflictError):
                await _see_to(client, pod)
        await client.clock.sleep(EVERY)


async def _see_to(client: Client, pod: Pod) -> None:
    key = (pod.namespace, pod.name)
    if pod.is_terminating:
        await client.clock.sleep(ENDING)
        await client.delete(Pod, *key, options=deletion(grace=0, uid=pod.metadata.uid))
    elif pod.spec.node_name and pod.status.phase == "Pending":
        change = merge({"metadata": {"uid": pod.metadata.uid}, "status": {"phase": "Running"}})
        await client.patch(Pod, *key, change=change, subresource="status")
