"""Pods get their nodes, or hear why not, over HTTPS on a real API server."""

from __future__ import annotations

from bayplan.client import Client, Untyped, merge
from bayplan.client.resources import EVENTS
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.scheduler.queue import SubQueue
from tests.scheduler.running_scheduler import RunningScheduler, node, pod, scheduling


async def test_pods_are_bound_to_nodes_that_fit(client: Client, namespace: str) -> None:
    await client.create(node("bayplan-a", cpu="1"))
    await client.create(node("bayplan-b", cpu="1"))
    await client.create(pod(namespace, "early", cpu="800m"))
    async with scheduling(client) as it:
        await client.create(pod(namespace, "late", cpu="800m"))
        assert set(await it.placed(namespace, "early", "late")) == {"bayplan-a", "bayplan-b"}


async def test_pods_of_other_schedulers_are_left_alone(client: Client, namespace: str) -> None:
    await client.create(node("bayplan-a"))
    async with scheduling(client) as it:
        await client.create(pod(namespace, "theirs", schedulerName="another"))
        await client.create(pod(namespace, "ours"))
        await it.placed(namespace, "ours")
        assert it.node_of(namespace, "theirs") == ""


async def test_a_refused_pod_says_why_and_is_placed_when_room_comes(
    client: Client, namespace: str
) -> None:
    await client.create(node("bayplan-a", cpu="1"))
    async with scheduling(client) as it:
        await client.create(pod(namespace, "large", cpu="2"))
        await it.until(lambda: bool(it.condition_message(namespace, "large")))
        assert it.condition_message(namespace, "large").startswith(
            "0/1 nodes are available: 1 Insufficient cpu."
        )
        assert it.scheduler.queue.count(SubQueue.UNSCHEDULABLE) == 1
        await client.create(node("bayplan-b", cpu="2"))
        assert await it.placed(namespace, "large") == ["bayplan-b"]


async def test_a_gated_pod_waits_for_its_gates(client: Client, namespace: str) -> None:
    await client.create(node("bayplan-a"))
    async with scheduling(client) as it:
        gated = pod(namespace, "gated", schedulingGates=[{"name": "example.com/wait"}])
        await client.create(gated)
        await client.create(pod(namespace, "free"))
        await it.placed(namespace, "free")
        assert it.scheduler.queue.count(SubQueue.GATED) == 1
        ungate = merge({"spec": {"schedulingGates": None}})
        await client.patch(Pod, namespace, "gated", change=ungate)
        assert await it.placed(namespace, "gated") == ["bayplan-a"]


async def test_the_more_important_pod_pushes_others_out(client: Client, namespace: str) -> None:
    await client.create(node("bayplan-a", cpu="1"))
    async with scheduling(client) as it:
        await client.create(priority_class("bayplan-low", 1))
        await client.create(priority_class("bayplan-high", 1000))
        low = pod(namespace, "low", cpu="1", priorityClassName="bayplan-low",
                  terminationGracePeriodSeconds=0)  # fmt: skip
        await client.create(low)
        await it.placed(namespace, "low")
        await client.create(pod(namespace, "high", cpu="1", priorityClassName="bayplan-high"))
        assert await it.placed(namespace, "high") == ["bayplan-a"]
        assert it.pod(namespace, "low") is None
        assert "Preempted" in await reasons(it, namespace)


async def test_a_pod_that_is_deleted_while_it_waits_is_forgotten(
    client: Client, namespace: str
) -> None:
    async with scheduling(client) as it:
        await client.create(pod(namespace, "p", cpu="2"))
        await it.until(lambda: bool(it.condition_message(namespace, "p")))
        await client.delete(Pod, namespace, "p")
        await it.until(lambda: it.pod(namespace, "p") is None)
        assert len(it.scheduler.queue) == 0


async def test_a_cordoned_node_is_not_used_until_it_is_open_again(
    client: Client, namespace: str
) -> None:
    closed = node("bayplan-a")
    closed["spec"] = {"unschedulable": True}
    await client.create(closed)
    async with scheduling(client) as it:
        await client.create(pod(namespace, "p"))
        await it.until(lambda: "unschedulable" in it.condition_message(namespace, "p"))
        await client.patch(Node, "bayplan-a", change=merge({"spec": {"unschedulable": False}}))
        assert await it.placed(namespace, "p") == ["bayplan-a"]


def priority_class(name: str, value: int) -> Untyped:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


async def reasons(it: RunningScheduler, namespace: str) -> set[str]:
    """The reasons of all events so far."""
    for recorder in it.scheduler.recorders:
        await recorder.drain()
    return {event.reason for event in (await it.client.list(EVENTS, namespace)).items}


async def test_without_any_node_pods_wait_for_one_and_are_not_tried_over_and_over(
    client: Client, namespace: str
) -> None:
    async with scheduling(client) as it:
        await client.create(pod(namespace, "p"))
        await it.until(lambda: "no nodes available" in it.condition_message(namespace, "p"))
        (entry,) = it.scheduler.queue
        assert (entry.subqueue, entry.attempts) == (SubQueue.UNSCHEDULABLE, 1)
        await client.create(node("bayplan-a"))
        assert await it.placed(namespace, "p") == ["bayplan-a"]


async def test_a_pod_that_claims_devices_is_not_placed_and_hears_why(
    client: Client, namespace: str
) -> None:
    await client.create(node("bayplan-a"))
    async with scheduling(client) as it:
        claims = [{"name": "gpu", "resourceClaimName": "a-gpu"}]
        await client.create(pod(namespace, "claiming", resourceClaims=claims))
        await it.until(lambda: bool(it.condition_message(namespace, "claiming")))
        assert it.condition_message(namespace, "claiming").startswith(
            "0/1 nodes are available: 1 cannot be judged: dynamic resources."
        )
        await client.create(pod(namespace, "plain"))
        await it.placed(namespace, "plain")
        assert it.node_of(namespace, "claiming") == ""
