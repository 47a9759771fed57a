"""Pods that claim devices: refused, bound by what is allocated, or not judged.

Nobody takes "cannot be judged" for a yes: no decision, no batch and no explanation does.
"""

from __future__ import annotations

import pytest

from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import group_pods
from bayplan.fit.decision import UNJUDGED
from bayplan.fit.explanation import explain
from bayplan.fit.hints import ClusterEvent, may_unblock
from bayplan.fit.preemption import preempt
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.builders import (
    make_device_class,
    make_node,
    make_pod,
    make_resource_claim,
    name_term,
)

NODES: tuple[KubeObject, ...] = (
    make_node("a").capacity(cpu="4", pods=10).obj(),
    make_node("b").capacity(cpu="4", pods=10).obj(),
    make_device_class("gpu").obj(),
)
CANNOT = "cannot be judged: dynamic resources"


def snapshot_of(*more: KubeObject) -> Snapshot:
    return Snapshot([*NODES, *more])


def refused(pod: Pod, *more: KubeObject) -> str:
    """Why no node is looked at."""
    found = explain(snapshot_of(*more), pod, with_fixes=False)
    assert found.refused_before is not None
    assert not found.fits
    assert not found.unjudged
    assert found.refused_before.plugin == "DynamicResources"
    (reason,) = found.refused_before.reasons
    assert reason in found.message
    return reason


def test_of_a_claim_that_is_missing_nothing_else_is_said() -> None:
    found = explain(snapshot_of(), make_pod("p").device("c").obj(), with_fixes=False)
    assert found.message == 'could not find ResourceClaim "default/c"'


def test_the_line_for_a_missing_class_is_kube_schedulers() -> None:
    claim = make_resource_claim("c").first_of("fpga").obj()
    snapshot = Snapshot([*NODES, claim], profile=Profile().as_kube_scheduler())
    found = explain(snapshot, make_pod("p").device("c").obj(), with_fixes=False)
    assert found.message == (
        "0/2 nodes are available: request any/try-0: device class fpga does not exist."
        " no new claims to deallocate,"
        " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_the_line_where_allocated_devices_are_elsewhere_is_kube_schedulers() -> None:
    claim = make_resource_claim("c").allocated(name_term("b")).obj()
    snapshot = Snapshot([*NODES, claim], profile=Profile().as_kube_scheduler())
    found = explain(snapshot, make_pod("p").cpu("5").device("c").obj(), with_fixes=False)
    assert found.message == (
        "0/2 nodes are available: 2 Insufficient cpu. still not schedulable,"
        " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_a_claim_that_is_missing_refuses() -> None:
    assert refused(make_pod("p").device("c").obj()) == 'could not find ResourceClaim "default/c"'


def test_a_claim_that_was_not_made_yet_refuses() -> None:
    pod = make_pod("p").device_after("t", told=False).obj()
    assert refused(pod) == 'pod "default/p": ResourceClaim not created yet'


def test_a_claim_that_names_nothing_refuses() -> None:
    pod = make_pod("p").device("c").obj()
    pod.spec.resource_claims[0].resource_claim_name = None
    said = 'pod "default/p", spec.resourceClaim "device-c": none of the supported fields are set'
    assert refused(pod) == said


def test_a_claim_that_is_being_deleted_refuses() -> None:
    claim = make_resource_claim("c").allocated().terminating().obj()
    assert refused(make_pod("p").device("c").obj(), claim) == 'resourceclaim "c" is being deleted'


def test_a_claim_that_was_made_for_another_pod_refuses() -> None:
    claim = make_resource_claim("c").allocated().owner("Pod", "other", "uid-other").obj()
    pod = make_pod("p").device_after("t", "c").obj()
    said = "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)"
    assert refused(pod, claim) == said


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            make_resource_claim("c").first_of("gpu", "fpga").obj(),
            "request any/try-1: device class fpga does not exist",
        ),
        (
            make_resource_claim("c").first_of("fpga").obj(),
            "request any/try-0: device class fpga does not exist",
        ),
    ],
)
def test_a_class_that_is_missing_refuses(claim: ResourceClaim, said: str) -> None:
    assert refused(make_pod("p").device("c").obj(), claim) == said


def test_no_claim_is_needed_where_the_status_says_so() -> None:
    pod = make_pod("p").device_after("t", None).obj()
    assert snapshot_of().decide(pod).node is not None


def test_an_allocated_claim_binds_the_pod_to_where_its_devices_are() -> None:
    claim = make_resource_claim("c").allocated(name_term("b")).reserved_for("somebody").obj()
    snapshot = snapshot_of(claim)
    pod = make_pod("p").device("c").obj()
    assert snapshot.decide(pod).node == "b"
    refusal = snapshot.refusal(pod, "a")
    assert refusal is not None
    assert refusal.reasons == ("resourceclaim not available on the node",)
    full = make_pod("full").cpu("5").device("c").obj()
    assert snapshot.decide(full).node is None
    assert not explain(snapshot, full, with_fixes=False).unjudged


def test_a_claim_that_too_many_have_is_in_use() -> None:
    others = [f"uid-of-{i}" for i in range(255)]
    pod = make_pod("p").uid("mine").device("c").obj()
    shared = make_resource_claim("c").allocated().reserved_for(*others).obj()
    assert snapshot_of(shared).decide(pod).node is not None
    full = make_resource_claim("c").allocated().reserved_for(*others, "one-more").obj()
    assert refused(pod, full) == "resourceclaim in use"
    own = make_resource_claim("c").allocated().reserved_for(*others, "mine").obj()
    assert snapshot_of(own).decide(pod).node is not None


def test_an_allocated_claim_without_a_selector_is_everywhere() -> None:
    snapshot = snapshot_of(make_resource_claim("c").allocated().obj())
    found = explain(snapshot, make_pod("p").device("c").obj())
    assert {one.name for one in found.nodes if one.fits} == {"a", "b"}


def test_what_would_have_to_be_allocated_is_not_judged() -> None:
    snapshot = snapshot_of(make_resource_claim("c").obj())
    pod = make_pod("p").device("c").priority(10).obj()
    found = explain(snapshot, pod)
    assert found.unjudged
    assert not found.fits
    assert found.message == f"{CANNOT} (to be allocated: default/c)"
    assert {one.refusal.code for one in found.nodes if one.refusal} == {UNJUDGED}
    assert snapshot.decide(pod).node is None
    assert not found.fixes


def test_what_other_plugins_refuse_everywhere_is_judged() -> None:
    snapshot = snapshot_of(make_resource_claim("c").obj())
    found = explain(snapshot, make_pod("p").cpu("5").device("c").obj(), with_fixes=False)
    assert not found.unjudged
    assert found.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_nobody_is_pushed_out_for_a_pod_that_cannot_be_judged() -> None:
    low = [make_pod(f"low-{node}").cpu("4").node(node).obj() for node in ("a", "b")]
    snapshot = snapshot_of(make_resource_claim("c").obj(), *low)
    pod = make_pod("p").cpu("4").priority(10).device("c").obj()
    assert preempt(snapshot, pod).node is None


def test_claims_that_nobody_tells_of_are_not_judged() -> None:
    snapshot = Snapshot(NODES, profile=Profile(knows_devices=False))
    assert explain(snapshot, make_pod("p").device("c").obj()).unjudged


def test_pods_with_claims_are_no_likes_of_those_without() -> None:
    snapshot = snapshot_of(make_resource_claim("c").obj(), make_resource_claim("d").obj())
    plain = [make_pod(f"plain-{i}").obj() for i in range(2)]
    claiming = [make_pod(f"claims-{one}").device(one).obj() for one in ("c", "d")]
    groups = group_pods(snapshot, [*plain, *claiming])
    assert [[pod.name for pod in group.pods] for group in groups] == [
        ["plain-0", "plain-1"],
        ["claims-c", "claims-d"],
    ]
    assert [group.is_interdependent for group in groups] == [False, True]


def test_a_claim_that_changes_wakes_its_pod() -> None:
    snapshot = snapshot_of()
    pod = make_pod("p").device("c").obj()
    event = ClusterEvent.of(None, make_resource_claim("c").allocated().obj())
    assert may_unblock(snapshot, pod, {"DynamicResources"}, event)


# -- extended resources that devices stand behind ----------------------------------------------

GPU = "example.com/gpu"


def extended(*more: KubeObject) -> Snapshot:
    return Snapshot(
        [
            make_node("plugin").capacity({"cpu": "4", "pods": "10", GPU: "1"}).obj(),
            make_node("devices").capacity(cpu="4", pods=10).obj(),
            *more,
        ]
    )


@pytest.mark.parametrize(
    ("device_class", "resource"),
    [
        (make_device_class("gpus", GPU).obj(), GPU),
        (make_device_class("gpus").obj(), "deviceclass.resource.kubernetes.io/gpus"),
    ],
)
def test_a_node_that_lacks_an_extended_resource_may_have_devices_for_it(
    device_class: KubeObject, resource: str
) -> None:
    pod = make_pod("p").request(resource, "2").obj()
    assert not explain(extended(), pod, with_fixes=False).unjudged
    snapshot = extended(device_class)
    assert explain(snapshot, pod, with_fixes=False).unjudged
    refusal = snapshot.refusal(pod, "devices")
    assert refusal is not None
    assert refusal.code == UNJUDGED


def test_a_node_that_has_the_extended_resource_itself_needs_no_device() -> None:
    snapshot = extended(make_device_class("gpus", GPU).obj())
    one, two = (make_pod("p").request(GPU, amount).obj() for amount in ("1", "2"))
    assert snapshot.decide(one).node == "plugin"
    refusal = snapshot.refusal(two, "plugin")
    assert refusal is not None
    assert refusal.reasons == (f"Insufficient {GPU}",)
    assert snapshot.decide(make_pod("plain").obj()).node is not None
