"""Stories of queues for any API server: what they need is created by hand."""

from __future__ import annotations

from bayplan.client import Client, Untyped, deletion, merge
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import Queue
from tests.scheduler.batch.objects import group, install_kinds, pod, queue
from tests.scheduler.running_scheduler import RunningScheduler, node, scheduling

QUEUE = "bayplan-team"
OFF = Profile(gates=FeatureGates({"QueueAllocationGate": False}))


def triggers_scale_up(found: Pod) -> bool:
    """Whether an autoscaler scales up for a pod: Cluster Autoscaler's rule, and Karpenter's."""
    scheduled = [one for one in found.status.conditions if one.type == "PodScheduled"]
    unschedulable = any(
        one.status == "False" and one.reason == "Unschedulable" for one in scheduled
    )
    return unschedulable and not found.spec.node_name and not found.spec.scheduling_gates


def scale_up_pods(it: RunningScheduler, namespace: str) -> set[str]:
    """The pods for which an autoscaler scales up now."""
    pods = it.live.cached(Pod).values()
    return {one.name for one in pods if one.namespace == namespace and triggers_scale_up(one)}


def gated(it: RunningScheduler, namespace: str) -> set[str]:
    """The pods that have a gate."""
    pods = it.live.cached(Pod).values()
    return {one.name for one in pods if one.namespace == namespace and one.spec.scheduling_gates}


async def queue_says_not_yet(client: Client, namespace: str) -> None:
    """Story 5: over quota pods stay gated and nothing is bought; quota frees, they are ungated, no
    node fits, nodes are bought, they run.
    """
    await install_kinds(client)
    await client.create(queue(QUEUE, {"cpu": "4"}))
    await client.create(node("bayplan-0", cpu="2"))
    async with scheduling(client) as it:
        for number in range(2):
            await client.create(pod(namespace, f"first-{number}", "2", queue=QUEUE))
        await it.until(lambda: len(scale_up_pods(it, namespace)) == 1)
        await client.create(node("bayplan-1", cpu="2"))
        await it.placed(namespace, "first-0", "first-1")
        await client.create(pod(namespace, "later", "3", queue=QUEUE))
        await client.create(pod(namespace, "plain", "1", gated=False))
        await it.until(lambda: scale_up_pods(it, namespace) == {"plain"})
        assert gated(it, namespace) == {"later"}
        await client.patch(Queue, QUEUE, change=merge({"spec": {"capability": {"cpu": "7"}}}))
        await it.until(lambda: scale_up_pods(it, namespace) == {"plain", "later"})
        await client.create(node("bayplan-2", cpu="4"))
        await it.placed(namespace, "later", "plain")


async def gang_whole_or_not_at_all(client: Client, namespace: str) -> None:
    """Story 5, the gang: all of its gates go, or none; it is placed whole, or waits whole."""
    await install_kinds(client)
    await client.create(queue(QUEUE, {"cpu": "4"}))
    await client.create(node("bayplan-0", cpu="2"))
    async with scheduling(client) as it:
        await client.create(pod(namespace, "other", "2", queue=QUEUE))
        await it.placed(namespace, "other")
        await client.create(group(namespace, "gang", QUEUE, 3))
        names = [f"gang-{number}" for number in range(3)]
        for name in names:
            await client.create(pod(namespace, name, "1", group="gang"))
        await client.create(pod(namespace, "small", "1", queue=QUEUE))
        await it.until(lambda: scale_up_pods(it, namespace) == {"small"})
        assert gated(it, namespace) == set(names)
        await client.delete(Pod, namespace, "small", options=deletion(grace=0))
        await client.delete(Pod, namespace, "other", options=deletion(grace=0))
        # Two of the three fit where the other pod was; none is placed before all are.
        await it.until(lambda: len(scale_up_pods(it, namespace)) == 1)
        assert gated(it, namespace) == set()
        assert [it.node_of(namespace, name) for name in names] == ["", "", ""]
        await client.create(node("bayplan-1", cpu="1"))
        await it.placed(namespace, *names)


async def everything_off(client: Client, namespace: str) -> None:
    """Story 8: the same pods over quota, with the gate off, as before there was one: bought for;
    and on again, where what was gated in the meantime is let in by quota all the same.
    """
    await install_kinds(client)
    await client.create(queue(QUEUE, {"cpu": "2"}))
    await client.create(node("bayplan-0", cpu="2"))
    async with scheduling(client) as it:
        await client.create(pod(namespace, "runs", "2", queue=QUEUE))
        await it.placed(namespace, "runs")
        await client.create(pod(namespace, "on", "2", queue=QUEUE))
        await client.create(_ungated(pod(namespace, "asked", "2", queue=QUEUE)))
        await it.until(lambda: bool(it.condition_message(namespace, "asked")))
        assert (gated(it, namespace), scale_up_pods(it, namespace)) == ({"on"}, set())
    async with scheduling(client, profile=OFF) as it:
        await it.until(lambda: scale_up_pods(it, namespace) == {"asked"})
        assert gated(it, namespace) == {"on"}
        last = "runs"
        for _ in ("on", "asked"):  # made in the same second, either may be first
            await client.delete(Pod, namespace, last, options=deletion(grace=0))
            last = await _one_placed(it, namespace, {"on", "asked"} - {last})
        await client.create(_ungated(pod(namespace, "again", "2", queue=QUEUE)))
        await it.until(lambda: scale_up_pods(it, namespace) == {"again"})
    async with scheduling(client) as it:
        await it.until(lambda: scale_up_pods(it, namespace) == set())
        await client.delete(Pod, namespace, last, options=deletion(grace=0))
        await it.placed(namespace, "again")


async def _one_placed(it: RunningScheduler, namespace: str, names: set[str]) -> str:
    """The first of these pods to have a node."""
    await it.until(lambda: any(it.node_of(namespace, name) for name in names))
    return next(name for name in names if it.node_of(namespace, name))


def _ungated(made: Untyped) -> Untyped:
    """A pod as it is without the webhook: it asks for the gate, and has none."""
    spec = made["spec"]
    assert isinstance(spec, dict)
    return {**made, "spec": {key: value for key, value in spec.items() if key != "schedulingGates"}}
