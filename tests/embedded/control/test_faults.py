"""Every fault that can be injected: what it does, and that its end is the recovery."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.cloud.templates import template
from bayplan.embedded.control.controller import Delete, RecordEvent, Update
from bayplan.embedded.control.faults import FAULT_KINDS, Fault, FaultBoard
from bayplan.embedded.control.sink import WriteRefused
from bayplan.embedded.control.view import ATTACHMENTS, CSI_NODES, NODES
from bayplan.embedded.simulation.clusterfile.faults import Targets
from bayplan.embedded.simulation.schedule import CONTROL, FaultControl
from bayplan.nodegroups import NodeGroupError, QuotaExceededError
from tests.embedded.simulation.virtual_clusters import (
    CLUSTER,
    DRIVER,
    VirtualCluster,
    claim,
    pod,
    virtual_cluster,
)

pytestmark = pytest.mark.whole


TESTED = {
    "stock-out", "quota", "never-registers", "slow-start", "node-dies", "node-flaps", "no-driver",
    "provision-fails", "attach-fails", "detach-sticks",
}  # fmt: skip


def test_every_kind_of_fault_is_tested_here() -> None:
    assert set(FAULT_KINDS) == TESTED


async def test_stock_out_leaves_a_failed_instance_until_it_is_given_back() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="stock-out", group="workers")
        failed = w.simulation.cloud.increase("workers", 1)[0]
        await w.forward(120)
        assert (failed.state, failed.error_code) == ("failed", "OUT_OF_STOCK")
        assert w.get(NODES, failed.name) is None
        w.clear()
        w.simulation.cloud.delete([failed.name])
        bought = w.simulation.cloud.increase("workers", 1)[0]
        await w.forward(120)
        assert w.ready(bought.name) == "True"


async def test_quota_refuses_at_once_and_allows_afterwards() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="quota", group="workers")
        with pytest.raises(QuotaExceededError, match="workers"):
            w.simulation.cloud.increase("workers", 1)
        assert w.simulation.cloud.target("workers") == 2
        w.clear()
        assert w.simulation.cloud.increase("workers", 1)


async def test_an_instance_that_never_registers_can_be_replaced() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="never-registers")
        lost = w.simulation.cloud.increase("workers", 1)[0]
        await w.forward(3600)
        assert lost.state == "creating"
        assert w.get(NODES, lost.name) is None
        w.clear()
        w.simulation.cloud.delete([lost.name])
        bought = w.simulation.cloud.increase("workers", 1)[0]
        await w.forward(120)
        assert w.ready(bought.name) == "True"


async def test_a_slow_start_takes_longer_and_then_works() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="slow-start", group="workers", delay=600.0)
        slow = w.simulation.cloud.increase("workers", 1)[0]
        w.clear()
        prompt = w.simulation.cloud.increase("workers", 1)[0]
        await w.forward(300)
        assert w.get(NODES, slow.name) is None
        assert w.ready(prompt.name) == "True"
        await w.forward(400)
        assert w.ready(slow.name) == "True"


async def test_a_dead_node_is_unreachable_its_pods_are_evicted_and_it_comes_back() -> None:
    async with virtual_cluster() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(10)
        w.inject(kind="node-dies", node="workers-1")
        await w.forward(30)
        assert w.ready("workers-1") == "True"
        await w.forward(30)
        assert w.ready("workers-1") == "Unknown"
        assert w.taints("workers-1") == {
            ("unreachable", "NoSchedule"),
            ("unreachable", "NoExecute"),
        }
        assert not w.pod("p").is_ready
        assert w.ready("workers-2") == "True"
        await w.forward(310)
        # Its kubelet is dead, so the pod is marked but cannot end.
        assert w.pod("p").is_terminating
        w.clear()
        await w.forward(60)
        assert w.ready("workers-1") == "True"
        assert w.taints("workers-1") == set()
        assert w.pod("p") is None


async def test_a_short_death_evicts_nobody() -> None:
    async with virtual_cluster() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(10)
        w.inject(kind="node-dies", node="workers-1")
        await w.forward(100)
        assert not w.pod("p").is_ready
        w.clear()
        await w.forward(600)
        assert w.pod("p").phase == "Running"
        assert w.pod("p").is_ready


async def test_a_flapping_node_goes_and_comes_until_the_fault_is_over() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="node-flaps", node="workers-1", period=200.0)
        seen = []
        for _ in range(8):
            await w.forward(50)
            seen.append(w.ready("workers-1"))
        assert "Unknown" in seen
        assert seen.count("True") >= 3
        w.clear()
        await w.forward(60)
        assert w.ready("workers-1") == "True"
        await w.forward(1000)
        assert w.ready("workers-1") == "True"


async def test_a_node_without_its_driver_gets_it_when_the_fault_is_over() -> None:
    async with virtual_cluster(settle=0) as w:
        w.inject(kind="no-driver", driver=DRIVER, node="workers-1")
        await w.forward(600)
        assert not w.get(CSI_NODES, "workers-1")["spec"]["drivers"]
        assert len(w.get(CSI_NODES, "workers-2")["spec"]["drivers"]) == 1
        w.clear()
        await w.forward(1)
        assert len(w.get(CSI_NODES, "workers-1")["spec"]["drivers"]) == 1


async def test_failing_to_provision_leaves_the_claim_pending_until_it_works() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="provision-fails", driver=DRIVER)
        await w.create(claim("c", "at-once"))
        await w.forward(100)
        assert w.claim_phase("c") == "Pending"
        assert w.events("ProvisioningFailed")
        w.clear()
        await w.forward(10)
        assert w.claim_phase("c") == "Bound"


async def test_failing_to_attach_keeps_the_pod_waiting_until_it_works() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="attach-fails", node="workers-1")
        await _bound(w, "p", "c")
        await w.forward(100)
        assert w.pod("p").phase == "Pending"
        assert "injected" in w.events("FailedAttachVolume")[0]["message"]
        w.clear()
        await w.forward(150)
        assert w.pod("p").phase == "Running"


async def test_a_detach_that_sticks_keeps_the_volume_until_it_works() -> None:
    async with virtual_cluster() as w:
        await _bound(w, "p", "c")
        await w.forward(60)
        w.inject(kind="detach-sticks", driver=DRIVER)
        await w.delete("pods", "p")
        await w.forward(300)
        assert w.pod("p") is None
        assert len(w.view.all(ATTACHMENTS)) == 1
        w.clear()
        await w.forward(10)
        assert w.view.all(ATTACHMENTS) == []


async def test_faults_in_the_cluster_file_come_and_go_at_their_times() -> None:
    text = (
        CLUSTER
        + """
faults:
  - {kind: node-dies, node: workers-1, at: 5m, for: 5m}
"""
    )
    async with virtual_cluster(text) as w:
        await w.forward(3 * 60)
        assert w.ready("workers-1") == "True"
        await w.forward(4 * 60)
        assert w.ready("workers-1") == "Unknown"
        await w.forward(5 * 60)
        assert w.ready("workers-1") == "True"


def control(**data: str) -> dict[str, Any]:
    meta = {"name": CONTROL.name, "namespace": CONTROL.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def test_faults_can_be_injected_by_a_config_map() -> None:
    async with virtual_cluster() as w:
        await w.create(control(one="{kind: node-dies, node: workers-1}"))
        await w.forward(60)
        assert w.ready("workers-1") == "Unknown"
        await w.simulation.sink.apply(
            Delete(ObjectKey("configmaps", "kube-system", "bayplan-faults"))
        )
        await w.forward(60)
        assert w.ready("workers-1") == "True"


async def test_a_fault_that_could_do_nothing_is_refused_when_it_is_written() -> None:
    async with virtual_cluster() as w:
        with pytest.raises(StatusError) as refused:
            await w.create(
                control(bad="{kind: no-such-thing}", typo="{kind: node-dies, node: worker-1}")
            )
        assert "data.bad: kind: there is no fault 'no-such-thing'" in refused.value.message
        assert "data.typo: node: there is no node 'worker-1'" in refused.value.message
        await w.create(control(one="{kind: node-dies, node: workers-1}"))
        with pytest.raises(WriteRefused, match=r"is invalid: data\.two"):
            await w.simulation.sink.apply(Update(CONTROL, lambda obj: obj | control(two="{}")))


async def test_a_node_whose_number_is_above_its_groups_maximum_can_be_struck() -> None:
    async with virtual_cluster() as w:
        for _ in range(4):
            w.simulation.cloud.increase("workers", 1)
            w.simulation.cloud.delete([w.simulation.cloud.instances_of("workers")[0].name])
        await w.forward(60)
        assert w.ready("workers-6") == "True"
        await w.create(control(one="{kind: node-dies, node: workers-6}"))
        await w.forward(60)
        assert w.ready("workers-6") == "Unknown"


async def test_a_fault_that_another_cluster_file_left_behind_is_reported() -> None:
    async with virtual_cluster() as w:
        await w.create(control(one="{kind: node-dies, node: workers-1}"))
        plan = FaultControl(w.simulation.context, Targets.of([], [])).decide(CONTROL)
        assert [(one.reason, one.message[:9]) for one in plan if isinstance(one, RecordEvent)] == [
            ("BadFault", "one: node")
        ]


def test_a_fault_concerns_those_whom_it_names() -> None:
    board = FaultBoard()
    board.inject("one", Fault(kind="attach-fails", driver="d", node="n"))
    assert board.find("attach-fails", driver="d", node="n", group="g")
    assert not board.find("attach-fails", driver="d", node="other")
    assert not board.find("provision-fails", driver="d")
    board.clear("one")
    assert not board.find("attach-fails", driver="d", node="n")


async def test_a_group_keeps_to_its_bounds() -> None:
    async with virtual_cluster(CLUSTER.replace("max: 5", "max: 3\n    min: 1")) as w:
        cloud = w.simulation.cloud
        with pytest.raises(NodeGroupError, match="maximum 3"):
            cloud.increase("workers", 2)
        cloud.delete(["workers-2"])
        with pytest.raises(NodeGroupError, match="below its minimum"):
            cloud.delete(["workers-1"])
        with pytest.raises(NodeGroupError, match="no instance"):
            cloud.delete(["workers-9"])
        with pytest.raises(NodeGroupError, match="no node group"):
            cloud.increase("others", 1)


async def test_instances_cost_what_their_type_costs() -> None:
    async with virtual_cluster(settle=0) as w:
        await w.forward(2 * 3600)
        assert w.simulation.cloud.spent() == pytest.approx(2 * 2 * 0.5)
        w.simulation.cloud.delete(["workers-1"])
        await w.forward(3600)
        assert w.simulation.cloud.spent() == pytest.approx(2.5)


async def test_what_is_still_being_made_can_be_cancelled() -> None:
    async with virtual_cluster() as w:
        cloud = w.simulation.cloud
        cloud.increase("workers", 2)
        cloud.decrease_target("workers", 1)
        assert cloud.target("workers") == 3
        with pytest.raises(NodeGroupError, match="only 1"):
            cloud.decrease_target("workers", 2)
        await w.forward(120)
        assert [one["metadata"]["name"] for one in w.view.all(NODES)] == [
            "workers-1", "workers-2", "workers-3",
        ]  # fmt: skip


async def _bound(w: VirtualCluster, name: str, claim_name: str) -> None:
    await w.create(claim(claim_name), pod(name, claims=(claim_name,)))
    await w.bind(name, "workers-1")


async def test_a_groups_template_is_what_its_nodes_become() -> None:
    own_topology = f"csiDrivers:\n  - name: {DRIVER}\n    topologyKey: disk/zone"
    text = CLUSTER.replace("count: 2", "count: 1")
    text = text.replace(f"csiDrivers:\n  - name: {DRIVER}", own_topology)
    async with virtual_cluster(text) as w:
        simulation = w.simulation
        group = simulation.cloud.group("workers")
        wanted = template(group, simulation.spec.drivers, "workers-1")
        node, csi_node = w.get(NODES, "workers-1"), w.get(CSI_NODES, "workers-1")
        assert wanted.node.metadata.labels == node["metadata"]["labels"]
        assert wanted.node.status.allocatable == node["status"]["allocatable"]
        assert not wanted.node.spec.taints
        assert wanted.csi_node is not None
        limits = [msgspec.to_builtins(one.allocatable) for one in wanted.csi_node.spec.drivers]
        assert limits == [one["allocatable"] for one in csi_node["spec"]["drivers"]]
