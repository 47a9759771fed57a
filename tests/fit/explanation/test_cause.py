"""The true cause of a pod's waiting, in a word."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Snapshot
from bayplan.fit.decision import Refusal
from bayplan.fit.explanation.cause import (
    WaitReason,
    group_pending_pods,
    list_pending_pods,
    wait_reason,
)
from bayplan.fit.plugins.node_resources_fit.filter import NodeResourcesFit
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.state.columns import ALL_ROWS
from bayplan.kube.meta import KubeObject
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from tests.builders import (
    HOSTNAME,
    ZONE,
    PodBuilder,
    make_attachment,
    make_csidriver,
    make_csinode,
    make_device_class,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_resource_claim,
    make_storage_class,
    node_term,
)
from tests.fit.random_clusters import random_object

DISK, FILES = "disk.csi.example.com", "files.csi.example.com"


def cause(pod: PodBuilder, *objects: KubeObject) -> WaitReason:
    built = pod.obj()
    return wait_reason(Snapshot([*objects, built]), built)


def disks(limit: int | None) -> list[KubeObject]:
    """A node with a driver, a class of it, and a claim of that class."""
    return [
        make_node("n1").obj(),
        make_csinode("n1").driver(DISK, limit).driver(FILES, 8).obj(),
        make_csidriver(DISK).obj(),
        make_storage_class("fast", DISK).waits().obj(),
        make_storage_class("shared", FILES).waits().obj(),
        make_pvc("data").storage_class("fast").obj(),
        make_pvc("files").storage_class("shared").obj(),
    ]


def test_a_pod_that_fits_waits_for_its_scheduler() -> None:
    found = cause(make_pod().scheduler("fancy"), make_node("n1").obj())
    assert found == WaitReason(Cause.SCHEDULER, "fits node n1, and waits for fancy")


def test_lack_of_room_is_the_cause_even_if_more_nodes_have_others_taints() -> None:
    tainted = [make_node(f"t{n}").taint("team", "a").obj() for n in range(3)]
    found = cause(make_pod().cpu("8"), make_node("n1").obj(), *tainted)
    assert found == WaitReason(Cause.RESOURCES, "Insufficient cpu")


def test_taints_are_the_cause_where_all_nodes_have_them_and_a_cordon_is_one() -> None:
    assert cause(make_pod(), make_node("n1").taint("team", "a").obj()).cause is Cause.TAINTS
    assert cause(make_pod(), make_node("n1").unschedulable().obj()).cause is Cause.TAINTS


def test_where_there_are_no_nodes_nodes_are_missing() -> None:
    assert cause(make_pod()) == WaitReason(Cause.NODES, "there are no nodes")


def test_affinity_to_nodes_and_pods_is_affinity_and_spread_is_not() -> None:
    node = make_node("n1").obj()
    here = make_pod("here").labels(app="web").node("n1").obj()
    term = node_term("disk", "In", "ssd")
    assert cause(make_pod().node_affinity(term), node).cause is Cause.AFFINITY
    assert cause(make_pod().labels(app="db").affinity(HOSTNAME), here, node).cause is (
        Cause.SCHEDULER  # a first pod that wants to be with its like may go anywhere
    )
    assert cause(make_pod().labels(app="web").anti_affinity(HOSTNAME), here, node).cause is (
        Cause.AFFINITY
    )
    assert cause(make_pod().labels(app="web").spread("no-such-label"), node).cause is Cause.SPREAD


def test_a_driver_whose_places_are_taken_is_named_and_no_other() -> None:
    taken = make_attachment("a", DISK, "n1", "pv-x").attached().obj()
    volume = make_pv("pv-x").csi(DISK, "handle").obj()
    pod = make_pod().claim("data").claim("files").scheduler("bayplan")
    found = cause(pod, *disks(1), taken, volume)
    assert found == WaitReason(Cause.VOLUMES, "node(s) exceed max volume count", (DISK,))


def test_a_driver_that_is_missing_is_named() -> None:
    objects = [one for one in disks(8) if one.kind != "CSINode"]
    found = cause(make_pod().claim("data").scheduler("bayplan"), *objects)
    assert (found.cause, found.drivers) == (Cause.VOLUMES, (DISK,))


def test_claims_that_nobody_binds_are_volumes() -> None:
    assert cause(make_pod().claim("gone"), make_node("n1").obj()).cause is Cause.VOLUMES
    waiting = [make_pvc("data").storage_class("now").obj(), make_storage_class("now", DISK).obj()]
    found = cause(make_pod().claim("data"), make_node("n1").obj(), *waiting)
    assert found.text == "pod has unbound immediate PersistentVolumeClaims"
    assert found.cause is Cause.VOLUMES


def test_full_nodes_of_the_volumes_own_zone_are_the_cause_whatever_other_zones_say() -> None:
    near = make_node("a").zone("a").capacity(cpu="1").obj()
    far = [make_node(f"b{n}").zone("b").obj() for n in range(3)]
    volume = make_pv("pv").csi(DISK, "h").node_affinity(node_term(ZONE, "In", "a"))
    claim = make_pvc("data").volume("pv").obj()
    drivers = [make_csinode(node.name).driver(DISK, 8).obj() for node in (near, *far)]
    pod = make_pod().cpu("2").claim("data")
    found = cause(pod, near, *far, *drivers, volume.obj(), claim)
    assert found == WaitReason(Cause.RESOURCES, "Insufficient cpu")


def test_gates_are_told_apart_from_the_queues_own() -> None:
    node = make_node("n1").obj()
    assert cause(make_pod().gate("example.com/wait"), node) == WaitReason(
        Cause.GATE, "waiting for scheduling gates: [example.com/wait]"
    )
    assert cause(make_pod().gate(QUEUE_SCHEDULING_GATE), node).cause is Cause.QUEUE
    both = make_pod().gate(QUEUE_SCHEDULING_GATE).gate("example.com/wait")
    assert cause(both, node).cause is Cause.GATE


def test_who_waits_for_a_queue_is_told_so_whatever_nodes_say() -> None:
    pod = make_pod().cpu("100").obj()
    snapshot = Snapshot([make_node("n1").obj(), pod])
    assert wait_reason(snapshot, pod, "q: no quota") == WaitReason(Cause.QUEUE, "q: no quota")


def test_claims_to_devices_are_devices() -> None:
    claim = make_resource_claim("gpu").obj()
    objects = [make_node("n1").obj(), make_device_class("gpu").obj(), claim]
    assert cause(make_pod().device("gpu"), *objects).cause is Cause.DEVICES


def test_taken_ports_are_told() -> None:
    holder = make_pod("holder").host_port(80).node("n1").obj()
    assert cause(make_pod().host_port(80), make_node("n1").obj(), holder).cause is Cause.PORTS


def test_of_a_nominated_pod_its_own_node_counts() -> None:
    victim = make_pod("victim").cpu("4").node("n1").terminating().obj()
    nodes = [make_node("n1").obj(), *(make_node(f"t{n}").capacity(pods=0).obj() for n in range(3))]
    found = cause(make_pod().cpu("2").nominated("n1").priority(10), victim, *nodes)
    said = "nominated for node n1, which victims have yet to leave: Insufficient cpu"
    assert found == WaitReason(Cause.RESOURCES, said)


def test_pods_alike_are_told_together_and_take_their_room_one_after_another() -> None:
    pods = [make_pod(f"p{n}").cpu("1").obj() for n in range(6)]
    snapshot = Snapshot([make_node("n1").obj(), *pods])
    found = group_pending_pods(snapshot, list_pending_pods(snapshot))
    assert [(one.reason.cause, len(one.pods)) for one in found] == [
        (Cause.SCHEDULER, 4),
        (Cause.RESOURCES, 2),
    ]


KINDS = st.lists(
    st.tuples(
        st.sampled_from(["1", "3", "9"]),
        st.sampled_from(["plain", "disk", "lost", "device", "gate", "queue", "port", "near"]),
    ),
    max_size=10,
)


def made(number: int, cpu: str, kind: str) -> list[KubeObject]:
    pod = make_pod(f"p{number}").cpu(cpu)
    match kind:
        case "disk":
            claim = make_pvc(f"c{number}").storage_class("fast").obj()
            return [claim, pod.claim(f"c{number}").obj()]
        case "device":
            return [make_resource_claim(f"d{number}").obj(), pod.device(f"d{number}").obj()]
        case "lost":
            pod.claim(f"lost-{number}")
        case "gate":
            pod.gate("example.com/wait")
        case "port":
            pod.host_port(80)
        case "near":
            pod.node_selector(disk="ssd")
    return [pod.obj()]


@settings(max_examples=100, deadline=None)
@given(KINDS, st.integers(0, 3), st.integers())
def test_every_waiting_pod_has_one_cause_whatever_the_order_of_objects(
    kinds: list[tuple[str, str]], nodes: int, seed: int
) -> None:
    objects: list[KubeObject] = [one for one in disks(2) if one.kind not in {"Node", "CSINode"}]
    for number in range(nodes):
        objects.append(make_node(f"n{number}").obj())
        if number % 2:
            objects.append(make_csinode(f"n{number}").driver(DISK, 1).obj())
    queues = {f"default/p{n}": "full" for n, (_, kind) in enumerate(kinds) if kind == "queue"}
    objects += [one for n, kind in enumerate(kinds) for one in made(n, *kind)]

    def distinct(order: list[KubeObject]) -> dict[str, WaitReason]:
        snapshot = Snapshot(order)
        found = group_pending_pods(snapshot, list_pending_pods(snapshot), queues)
        assert sum(len(one.pods) for one in found) == len(kinds)
        return {key: one.reason for one in found for key in one.pods}

    first = distinct(objects)
    assert len(first) == len(kinds)
    assert {key for key, one in first.items() if one.cause is Cause.QUEUE} == set(queues)
    random.Random(seed).shuffle(objects)
    assert distinct(objects) == first


def test_a_volume_that_no_node_reaches_is_the_cause_though_all_nodes_are_full() -> None:
    nodes = [make_node(f"b{n}").zone("b").capacity(cpu="1").obj() for n in range(3)]
    nodes.append(make_node("roomy").zone("c").obj())
    volume = make_pv("pv").csi(DISK, "h").node_affinity(node_term(ZONE, "In", "a"))
    claim = make_pvc("data").volume("pv").obj()
    drivers = [make_csinode(node.name).driver(DISK, 8).obj() for node in nodes]
    found = cause(make_pod().cpu("2").claim("data"), *nodes, *drivers, volume.obj(), claim)
    assert found.cause is Cause.VOLUMES
    assert found.text == "node(s) didn't match PersistentVolume's node affinity"


def test_taints_that_leave_no_node_are_the_cause_whatever_those_nodes_lack_besides() -> None:
    nodes = [make_node(f"t{n}").taint("team", "a").capacity(cpu="1").obj() for n in range(2)]
    cordoned = make_node("c").unschedulable().obj()
    assert cause(make_pod().cpu("2"), *nodes, cordoned).cause is Cause.TAINTS


@given(st.integers(0, 100_000))
@settings(max_examples=60)
def test_what_many_nodes_lack_is_told_as_of_each_alone(seed: int) -> None:
    rng = random.Random(seed)
    snapshot = Snapshot(random_object(rng) for _ in range(60))
    for record in list(snapshot.cluster.pods.by_key.values()):
        evaluation = snapshot.evaluation(record.pod)
        for one in () if isinstance(evaluation, Refusal) else evaluation.filters:
            if isinstance(one, NodeResourcesFit):
                slots = np.flatnonzero(snapshot.cluster.alive & ~one.passes(ALL_ROWS))
                assert one.refusals(slots) == [one.refusal(slot) for slot in slots.tolist()]
