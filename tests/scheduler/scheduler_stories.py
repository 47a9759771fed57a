"""Stories of the scheduler for any API server: what they need is created by hand.

No controller, kubelet or CSI driver is needed: nodes, CSINodes, volumes and bound claims are
written as those would leave them.
"""

from __future__ import annotations

from bayplan.client import Client, Untyped, merge
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.kube.nodes import Node
from tests.scheduler.running_scheduler import RunningScheduler, node, pod, scheduling

DRIVER = "disk.csi.example.com"
WITH, BARE = "bayplan-with-driver", "bayplan-bare"
OLD_KEY = f"attachable-volumes-csi-{DRIVER}"


async def no_driver_here(client: Client, namespace: str) -> None:
    """Story 2: a node without the driver is not used for pods that need it, and is for others."""
    await _two_nodes(client, limit=2)
    for name in ("a", "b", "c"):
        await claim(client, namespace, name)
    async with scheduling(client) as it:
        for name in ("a", "b", "c"):
            await client.create(with_volume(namespace, name))
        assert await it.placed(namespace, "a", "b") == [WITH, WITH]
        await it.until(lambda: bool(it.condition_message(namespace, "c")))
        said = it.condition_message(namespace, "c")
        assert f"1 {DRIVER} CSI driver is not installed on the node" in said
        assert "1 node(s) exceed max volume count" in said
        await client.create(pod(namespace, "other", cpu="3"))
        assert await it.placed(namespace, "other") == [BARE]
        await _nobody_wrote_a_rule(it)
        await client.create(csinode(BARE, limit=2))
        assert await it.placed(namespace, "c") == [BARE]


async def everything_off(client: Client, namespace: str) -> None:
    """Story 8: the same inputs, gate by gate: held back, then as before the feature, and again."""
    await _two_nodes(client, limit=1)
    await client.patch(Node, BARE, change=merge({"spec": {"unschedulable": False}}))
    for name in ("on", "held", "again"):
        await claim(client, namespace, name)
    async with scheduling(client) as it:
        await client.create(with_volume(namespace, "on"))
        assert await it.placed(namespace, "on") == [WITH]
        await client.create(with_volume(namespace, "held"))
        await it.until(lambda: "is not installed" in it.condition_message(namespace, "held"))
    async with scheduling(client, profile=_without("VolumeLimitScaling")) as it:
        assert await it.placed(namespace, "held") == [BARE]
    async with scheduling(client) as it:
        await client.create(with_volume(namespace, "again"))
        await it.until(lambda: "is not installed" in it.condition_message(namespace, "again"))


async def old_limits_off(client: Client, namespace: str) -> None:
    """Story 8, the other gate: limits that nodes publish by key count, then do not, and again."""
    size = {"cpu": "4", "memory": "32Gi", "pods": "110", OLD_KEY: "1"}
    await client.create({**node(WITH), "status": {"capacity": size, "allocatable": size}})
    await client.create(csinode(WITH, limit=None))
    for name in ("on", "held", "again"):
        await claim(client, namespace, name)
    async with scheduling(client) as it:
        await client.create(with_volume(namespace, "on"))
        await it.placed(namespace, "on")
        await client.create(with_volume(namespace, "held"))
        await it.until(lambda: "exceed max volume count" in it.condition_message(namespace, "held"))
    async with scheduling(client, profile=_without("AttachVolumeLimit")) as it:
        assert await it.placed(namespace, "held") == [WITH]
    async with scheduling(client) as it:
        await client.create(with_volume(namespace, "again"))
        await it.until(
            lambda: "exceed max volume count" in it.condition_message(namespace, "again")
        )


def _without(gate: str) -> Profile:
    return Profile(gates=FeatureGates({gate: False}))


async def _two_nodes(client: Client, limit: int) -> None:
    """One with the driver, and a bare one that is larger, so that it is liked better."""
    await client.create(node(WITH, cpu="2"))
    await client.create(node(BARE, cpu="16"))
    await client.create(csinode(WITH, limit))


async def _nobody_wrote_a_rule(it: RunningScheduler) -> None:
    for name in (WITH, BARE):
        found = await it.client.get(Node, name)
        # A plain API server marks new nodes as not ready by itself.
        assert [t.key for t in found.spec.taints if t.key != "node.kubernetes.io/not-ready"] == []


def csinode(name: str, limit: int | None) -> Untyped:
    """A CSINode that lists the driver."""
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": []}
    if limit is not None:
        driver["allocatable"] = {"count": limit}  # type: ignore[assignment]
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    return {**kind, "metadata": {"name": name}, "spec": {"drivers": [driver]}}


async def claim(client: Client, namespace: str, name: str) -> None:
    """A claim and its volume, bound to each other."""
    volume = f"{namespace}-{name}"
    room = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim = await client.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "namespace": namespace,
                "name": name,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                **room,
                "volumeName": volume,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )
    meta = claim["metadata"]
    assert isinstance(meta, dict)
    reference = {"namespace": namespace, "name": name, "uid": meta["uid"]}
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **room,
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": DRIVER, "volumeHandle": volume},
                "claimRef": reference,
            },
        }
    )


def with_volume(namespace: str, name: str) -> Untyped:
    """A pod that uses the claim of its name."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
    return pod(namespace, name, volumes=[volume])
