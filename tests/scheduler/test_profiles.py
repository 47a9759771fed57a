"""Each profile's plugins, and what they are told, decide, explain, preempt and wake its pods."""

from __future__ import annotations

from bayplan.client import Client, Untyped, merge
from bayplan.fit import PluginSet
from bayplan.kube.nodes import Node
from bayplan.kube.workloads import Service
from bayplan.scheduler.config import SchedulerSettings, parse_settings, plugin_set, rules
from tests.builders import make_pod
from tests.scheduler.running_scheduler import node, pod, scheduling

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
GPU = "example.com/gpu"


def settings(profiles: str) -> SchedulerSettings:
    return parse_settings((HEAD + profiles).encode(), "config.yaml")


def profile_with_args(name: str, args: str, scheduler: str = "bayplan") -> str:
    """A profile with one plugin's arguments."""
    said = "\n".join(f"      {line}" for line in args.strip().splitlines())
    return f"- schedulerName: {scheduler}\n  pluginConfig:\n  - name: {name}\n    args:\n{said}\n"


def test_a_profile_without_a_word_is_the_models_own_set() -> None:
    (profile,) = settings("- schedulerName: bayplan\n").profiles
    assert plugin_set(profile) == PluginSet()


def test_each_pod_is_asked_by_its_own_schedulers_plugins() -> None:
    made = rules(settings("- schedulerName: a\n- schedulerName: b\n  plugins:\n"
                          "    multiPoint:\n      disabled: [{name: NodePorts}]\n"))  # fmt: skip
    assert made.plugins_for(make_pod().scheduler("a").obj()).asks("NodePorts")
    assert not made.plugins_for(make_pod().scheduler("b").obj()).asks("NodePorts")


async def test_two_profiles_score_the_same_nodes_differently(
    client: Client, namespace: str
) -> None:
    packing = profile_with_args(
        "NodeResourcesFit", "scoringStrategy:\n  type: MostAllocated", scheduler="packing"
    )
    await client.create(node("bayplan-a"))
    await client.create(node("bayplan-b"))
    async with scheduling(client, settings("- schedulerName: bayplan\n" + packing)) as it:
        await client.create(pod(namespace, "first", cpu="1"))
        (busy,) = await it.placed(namespace, "first")
        await client.create(pod(namespace, "apart", cpu="1"))
        (other,) = await it.placed(namespace, "apart")
        assert other != busy
        await client.create(pod(namespace, "more", cpu="1"))
        (busier,) = await it.placed(namespace, "more")
        await client.create(pod(namespace, "packed", cpu="1", schedulerName="packing"))
        assert await it.placed(namespace, "packed") == [busier]


async def test_added_affinity_holds_for_every_pod_and_is_told_by_name(
    client: Client, namespace: str
) -> None:
    added = """
addedAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions: [{key: pool, operator: In, values: [ours]}]
"""
    await client.create(node("bayplan-a"))
    async with scheduling(client, settings(profile_with_args("NodeAffinity", added))) as it:
        await client.create(pod(namespace, "p"))
        await it.until(lambda: "scheduler-enforced" in it.condition_message(namespace, "p"))
        labels = merge({"metadata": {"labels": {"pool": "ours"}}})
        await client.patch(Node, "bayplan-a", change=labels)
        assert await it.placed(namespace, "p") == ["bayplan-a"]


async def test_ignored_resources_neither_refuse_nor_keep_a_pod_from_waking(
    client: Client, namespace: str
) -> None:
    await client.create(node("bayplan-a", cpu="1"))
    ignoring = profile_with_args("NodeResourcesFit", f"ignoredResources: [{GPU}]")
    async with scheduling(client, settings(ignoring)) as it:
        await client.create(_wanting_a_gpu(namespace, "small", "500m"))
        await it.placed(namespace, "small")
        await client.create(_wanting_a_gpu(namespace, "large", "2"))
        await it.until(lambda: "Insufficient cpu" in it.condition_message(namespace, "large"))
        assert GPU not in it.condition_message(namespace, "large")
        await client.create(node("bayplan-b", cpu="2"))
        assert await it.placed(namespace, "large") == ["bayplan-b"]


async def test_default_constraints_that_must_hold_refuse_until_the_service_is_gone(
    client: Client, namespace: str
) -> None:
    spread = """
defaultingType: List
defaultConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: DoNotSchedule
  minDomains: 2
"""
    await client.create(node("bayplan-a"))
    await client.create(_service(namespace))
    async with scheduling(client, settings(profile_with_args("PodTopologySpread", spread))) as it:
        for name in ("one", "two"):
            meta = {"namespace": namespace, "name": name, "labels": {"app": "web"}}
            await client.create({**pod(namespace, name), "metadata": meta})
        await it.placed(namespace, "one")
        await it.until(lambda: "topology spread" in it.condition_message(namespace, "two"))
        await client.delete(Service, namespace, "web")
        assert await it.placed(namespace, "two") == ["bayplan-a"]


async def test_a_profile_that_does_not_preempt_pushes_nobody_out(
    client: Client, namespace: str
) -> None:
    await client.create(node("bayplan-a", cpu="1"))
    peaceful = (
        "- schedulerName: bayplan\n  plugins:\n    postFilter:\n      disabled: [{name: '*'}]\n"
    )
    async with scheduling(client, settings(peaceful)) as it:
        await client.create(pod(namespace, "low", cpu="1"))
        await it.placed(namespace, "low")
        await client.create(_important())
        await client.create(pod(namespace, "high", cpu="1", priorityClassName="bayplan-high"))
        await it.until(lambda: bool(it.condition_message(namespace, "high")))
        assert (
            it.condition_message(namespace, "high")
            == "0/1 nodes are available: 1 Insufficient cpu."
        )
        assert it.node_of(namespace, "low") == "bayplan-a"


def _wanting_a_gpu(namespace: str, name: str, cpu: str) -> Untyped:
    amounts = {"cpu": cpu, GPU: "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    return pod(namespace, name, containers=[container])


def _service(namespace: str) -> Untyped:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }


def _important() -> Untyped:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": "bayplan-high"}, "value": 1000}
