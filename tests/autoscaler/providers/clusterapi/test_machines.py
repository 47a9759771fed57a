"""Machines are bought, come, fail and go; each step as Cluster API's own controllers see it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.client import Client, Untyped, merge
from bayplan.client.config import from_kubeconfig
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.nodes import Node
from bayplan.nodegroups import (
    ErrorClass,
    Instance,
    InstanceError,
    InstanceState,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    RefusedError,
    UnimplementedError,
)
from tests.autoscaler.providers.clusterapi.capi import (
    CAPACITY,
    DELETE,
    GROUP,
    MAX,
    MIN,
    NAMESPACE,
    SIZED,
    Capi,
)
from tests.autoscaler.providers.clusterapi.providers import names, node, opened, seen
from tests.autoscaler.providers.conditions import until

WORKERS = "MachineDeployment/default/workers"
POOL = "MachinePool/default/pool"


async def workers(capi: Capi, provider: Provider, count: int, **bounds: str) -> None:
    """A deployment of so many machines, which all run."""
    said = {MIN: bounds.get("least", "0"), MAX: bounds.get("most", "5")}
    await capi.make("MachineDeployment", "workers", count, said)
    await capi.settle()
    await seen(provider, WORKERS, target=count, states=["running"] * count)


async def test_what_is_bought_is_pending_and_then_runs(capi: Capi, provider: Provider) -> None:
    await workers(capi, provider, 1)
    await provider.increase(WORKERS, 2)
    assert await provider.target_size(WORKERS) == 3
    assert await capi.replicas("MachineDeployment", "workers") == 3
    await capi.settle(boot=False)
    await seen(provider, WORKERS, states=["creating", "creating", "running"])
    pending = (await provider.instances(WORKERS))[-1]
    assert pending == Instance("pending-machine-default_workers-1-3", InstanceState.CREATING)
    found = await provider.group_for_node(NodeRef(pending.provider_id))
    assert found is not None
    assert found.id == WORKERS
    await capi.settle()
    await seen(provider, WORKERS, states=["running"] * 3)
    ids = {one.provider_id for one in await provider.instances(WORKERS)}
    nodes = {one.spec.provider_id for one in (await capi.client.list(Node)).items}
    assert ids == nodes


async def test_a_group_keeps_to_its_maximum_whatever_is_asked(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 1, most="3")
    with pytest.raises(RefusedError, match="4 is above its maximum 3"):
        await provider.increase(WORKERS, 3)
    for count in (0, -1):
        with pytest.raises(InvalidRequestError):
            await provider.increase(WORKERS, count)
    tries = await asyncio.gather(
        *(provider.increase(WORKERS, 1) for _ in range(4)), return_exceptions=True
    )
    assert all(one is None or isinstance(one, RefusedError) for one in tries)
    assert await capi.replicas("MachineDeployment", "workers") <= 3


async def test_a_size_that_somebody_else_writes_meanwhile_is_not_undone(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 1)
    change = merge({"spec": {"replicas": 4}})
    await capi.client.patch(capi.of("MachineDeployment"), NAMESPACE, "workers", change=change)
    with pytest.raises(RefusedError, match="6 is above its maximum 5"):
        await provider.increase(WORKERS, 2)
    assert await capi.replicas("MachineDeployment", "workers") == 4
    await seen(provider, WORKERS, target=4)


async def test_the_machines_that_are_meant_go_and_no_others(capi: Capi, provider: Provider) -> None:
    await workers(capi, provider, 4)
    going = ["workers-1-2", "workers-1-4"]
    await provider.delete_nodes(WORKERS, [node(name) for name in (*going, going[0])])
    assert await provider.target_size(WORKERS) == 2
    machines = await capi.machines()
    marked = [one for one in machines if DELETE in machines[one]["metadata"].get("annotations", {})]
    assert sorted(marked) == going
    assert "cluster.k8s.io/delete-machine" in machines[going[0]]["metadata"]["annotations"]
    await capi.settle()
    assert sorted(await capi.machines()) == ["workers-1-1", "workers-1-3"]
    await seen(provider, WORKERS, target=2, states=["running"] * 2)


async def test_nodes_are_given_back_all_or_none(capi: Capi, provider: Provider) -> None:
    await workers(capi, provider, 3, least="2")
    await capi.make("MachineSet", "alone", 1)
    await capi.settle()
    await seen(provider, "MachineSet/default/alone", states=["running"])
    wrong = {
        "1 would be below its minimum 2": [node("workers-1-1"), node("workers-1-2")],
        "no machine of node 'infra:///zone-a/nobody'": [node("workers-1-1"), node("nobody")],
        f"alone-4 is not in node group {WORKERS}": [node("workers-1-1"), node("alone-4")],
    }
    for said, nodes in wrong.items():
        with pytest.raises((RefusedError, NodeGroupNotFoundError, InvalidRequestError), match=said):
            await provider.delete_nodes(WORKERS, nodes)
    machines = await capi.machines()
    assert not any(DELETE in one["metadata"].get("annotations", {}) for one in machines.values())
    assert await capi.replicas("MachineDeployment", "workers") == 3


async def test_a_machine_that_is_going_already_is_not_counted_twice(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 3)
    held = merge({"metadata": {"finalizers": ["example.com/held"]}})
    await capi.client.patch(capi.of("Machine"), NAMESPACE, "workers-1-1", change=held)
    await capi.client.delete(capi.of("Machine"), NAMESPACE, "workers-1-1")
    await seen(provider, WORKERS, states=["deleting", "running", "running"])
    await provider.delete_nodes(WORKERS, [node("workers-1-1")])
    assert await capi.replicas("MachineDeployment", "workers") == 3
    going = next(one for one in await provider.instances(WORKERS) if one.state.value == "deleting")
    assert going == Instance("infra:///zone-a/workers-1-1", InstanceState.DELETING)


async def test_the_target_can_fall_only_by_what_is_no_node_yet(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 2)
    await provider.increase(WORKERS, 2)
    await capi.settle(boot=False)
    await seen(provider, WORKERS, states=["creating", "creating", "running", "running"])
    with pytest.raises(RefusedError, match="2 are nodes already"):
        await provider.decrease_target(WORKERS, 3)
    await provider.decrease_target(WORKERS, 2)
    await capi.settle()
    assert sorted(await capi.machines()) == ["workers-1-1", "workers-1-2"]


async def test_a_machine_that_failed_is_an_instance_that_cannot_be_had(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 1, least="1")
    await provider.increase(WORKERS, 2)
    await capi.settle(boot=False)
    await capi.fail("workers-1-2", "no m5.large in zone-a", "InsufficientResources")
    await capi.status("workers-1-3", phase="Failed")
    await seen(provider, WORKERS, errors=2)
    out, other = [one for one in await provider.instances(WORKERS) if one.error]
    why = InstanceError(
        ErrorClass.OUT_OF_RESOURCES, "InsufficientResources", "no m5.large in zone-a"
    )
    assert out == Instance("failed-machine-default_workers-1-2", InstanceState.CREATING, why)
    assert other.error == InstanceError(
        ErrorClass.OTHER, "ProvisioningFailed", "the machine failed"
    )
    await provider.delete_nodes(WORKERS, [NodeRef(out.provider_id), NodeRef(other.provider_id)])
    await capi.settle()
    assert sorted(await capi.machines()) == ["workers-1-1"]


async def test_a_failed_machine_at_the_minimum_is_replaced(capi: Capi, provider: Provider) -> None:
    await capi.make("MachineDeployment", "workers", 1, {MIN: "1"})
    await capi.settle(boot=False)
    await capi.fail("workers-1-1", "quota")
    await seen(provider, WORKERS, errors=1)
    await provider.delete_nodes(WORKERS, [NodeRef("failed-machine-default_workers-1-1")])
    assert await capi.replicas("MachineDeployment", "workers") == 1
    await capi.settle()
    assert sorted(await capi.machines()) == ["workers-1-2"]


async def test_a_machine_that_failed_as_a_node_is_left_to_those_who_look_after_nodes(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 1)
    await capi.fail("workers-1-1", "the kubelet is silent")
    running = Instance("infra:///zone-a/workers-1-1", InstanceState.RUNNING)
    assert list(await provider.instances(WORKERS)) == [running]


async def test_nodes_are_found_by_any_form_of_their_id_and_by_their_annotations(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 1)
    notes = {f"{GROUP}/machine": "workers-1-1", f"{GROUP}/cluster-namespace": "default"}
    for ref in (
        node("workers-1-1"),
        NodeRef("infra://workers-1-1"),
        NodeRef("", "n", annotations=notes),
    ):
        found = await provider.group_for_node(ref)
        assert found is not None
        assert found.id == WORKERS
    for ref in (node("other"), NodeRef(), NodeRef("azure://a/virtualMachineScaleSets/x/1")):
        assert await provider.group_for_node(ref) is None


async def test_a_machine_without_an_id_has_that_of_its_node(client: Client) -> None:
    capi = Capi(client)
    await capi.install()
    await capi.make("MachineDeployment", "workers", 2)
    await capi.settle()
    for name in ("workers-1-1", "workers-1-2"):
        change = merge({"spec": {"providerID": None}})
        await capi.client.patch(capi.of("Machine"), NAMESPACE, name, change=change)
    await capi.client.delete(Node, "workers-1-2")
    async with opened(capi) as provider:
        assert [one.provider_id for one in await provider.instances(WORKERS)] == [
            "infra:///zone-a/workers-1-1",
            "pending-machine-default_workers-1-2",
        ]


async def test_a_pool_lists_its_machines_itself(capi: Capi, provider: Provider) -> None:
    ids = ["aws:///a/i-1", "aws:///a/i-2"]
    await capi.make("MachinePool", "pool", 2, SIZED, providerIDList=ids)
    await seen(provider, POOL, target=2, states=["running"] * 2)
    assert [one.provider_id for one in await provider.instances(POOL)] == ids
    found = await provider.group_for_node(NodeRef("aws:///a/i-2"))
    assert found is not None
    assert found.id == POOL
    with pytest.raises(NodeGroupNotFoundError, match="no machine of node 'aws:///a/i-2'"):
        await provider.delete_nodes(POOL, [NodeRef("aws:///a/i-2")])
    with pytest.raises(RefusedError, match="2 are nodes already"):
        await provider.decrease_target(POOL, 1)
    await provider.increase(POOL, 1)
    await provider.decrease_target(POOL, 1)
    meta = {"namespace": NAMESPACE, "name": "m"}
    machine: Untyped = {"metadata": meta, "spec": {"providerID": ids[1]}}
    await capi.client.create(machine, capi.of("Machine"))
    await seen(provider, POOL, states=["creating", "running"])
    await provider.delete_nodes(POOL, [NodeRef(ids[1])])
    assert await capi.replicas("MachinePool", "pool") == 1
    assert DELETE in (await capi.machines())["m"]["metadata"]["annotations"]


async def test_a_deployment_that_is_rolled_out_is_not_made_smaller(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 2)
    revision = "machinedeployment.clusters.x-k8s.io/revision"
    old = merge({"metadata": {"annotations": {revision: "1"}}})
    await capi.client.patch(capi.of("MachineSet"), NAMESPACE, "workers-1", change=old)
    owner = (await capi.list("MachineSet"))[0]["metadata"]["ownerReferences"]
    newer = {"namespace": NAMESPACE, "name": "workers-2", "ownerReferences": owner}
    newer["annotations"] = {revision: "2"}
    await capi.client.create({"metadata": newer, "spec": {"replicas": 1}}, capi.of("MachineSet"))

    async def least() -> int:
        return (await provider.groups())[0].min_size

    async def held() -> bool:
        return await least() == 2

    await until(held)
    with pytest.raises(RefusedError, match="is being rolled out"):
        await provider.delete_nodes(WORKERS, [node("workers-1-1")])
    with pytest.raises(RefusedError, match="is being rolled out"):
        await provider.decrease_target(WORKERS, 1)
    await provider.increase(WORKERS, 1)
    await capi.client.scale(capi.of("MachineSet"), NAMESPACE, "workers-1", replicas=0)

    async def free() -> bool:
        return await least() == 0

    await until(free)


async def test_a_group_that_vanishes_is_not_found_and_its_namesake_is_not_touched(
    capi: Capi, provider: Provider
) -> None:
    await workers(capi, provider, 1)
    await capi.client.delete(capi.of("MachineDeployment"), NAMESPACE, "workers")
    with pytest.raises((NodeGroupNotFoundError, RefusedError)):
        await provider.increase(WORKERS, 1)
    await capi.make("MachineDeployment", "workers", 1)
    try:
        await provider.increase(WORKERS, 1)
    except (NodeGroupNotFoundError, RefusedError):
        assert await capi.replicas("MachineDeployment", "workers") == 1


async def test_the_management_cluster_may_be_another_one(client: Client, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "management"
    async with (
        ApiServer(ServerConfig(kubeconfig=kubeconfig)),
        Client(from_kubeconfig([kubeconfig])) as management,
    ):
        capi = Capi(management, workload=client)
        await capi.install()
        bad = {**SIZED, f"{CAPACITY}csi-driver": "x"}
        await capi.make("MachineDeployment", "workers", 1, bad)
        await capi.settle()
        async with opened(capi, config=kubeconfig) as provider:
            assert await names(provider) == [WORKERS]
            await provider.increase(WORKERS, 1)
            assert await capi.replicas("MachineDeployment", "workers") == 2
            (problem,) = await provider.problems()
            assert problem.about is None
            assert [one.name for one in (await client.list(Node)).items] == ["workers-1-1"]


async def test_cluster_api_has_no_prices(capi: Capi, provider: Provider) -> None:
    now = capi.client.clock.now()
    with pytest.raises(UnimplementedError):
        await provider.node_price(node("x"), now, now)
    await provider.cleanup()
