"""A node is upcoming until it reports what was promised; only a new one can be late for that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.readiness import (
    DRIVER_LABEL,
    DRIVER_PREFIX,
    DRIVERS_REGISTERED,
    NodeReadiness,
    NodeState,
    ReadinessCriteria,
    update_readiness,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.meta import Condition
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.kube.times import timestamp
from tests.autoscaler.cluster_views import DISK, NOW
from tests.builders import make_csinode, make_node

OPTIONS = AutoscalerOptions()
PROMISED = ReadinessCriteria(drivers=frozenset({DISK}))
FILES = "files.csi.example.com"


def node(labels: Mapping[str, str] | None = None, *, ready: bool = True) -> Node:
    made = make_node("n").uid("u").created(timestamp(NOW)).labels(labels or {}).obj()
    status = "True" if ready else "False"
    since = timestamp(NOW)
    made.status.conditions = [Condition(type="Ready", status=status, last_transition_time=since)]
    return made


def after(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def prepare_estimate(
    member: NodeState,
    csinode: CSINode | None,
    minutes: float,
    promise: ReadinessCriteria = PROMISED,
) -> NodeReadiness:
    update_readiness(member, csinode, promise, OPTIONS, after(minutes))
    return member.readiness


def test_a_node_that_says_it_is_not_ready_is_starting_and_then_unready() -> None:
    member = NodeState(node(ready=False))
    assert prepare_estimate(member, None, 14.9) is NodeReadiness.NOT_STARTED
    assert prepare_estimate(member, None, 15) is NodeReadiness.UNREADY


def test_a_group_may_give_its_nodes_another_time_to_start() -> None:
    slow = ReadinessCriteria(startup_time=3600.0)
    assert (
        prepare_estimate(NodeState(node(ready=False)), None, 59, slow) is NodeReadiness.NOT_STARTED
    )
    assert prepare_estimate(NodeState(node(ready=False)), None, 60, slow) is NodeReadiness.UNREADY


def test_a_node_with_a_startup_taint_is_starting() -> None:
    made = node()
    tainted = make_node("n").taint("startup-taint.cluster-autoscaler.kubernetes.io/x").obj()
    made.spec.taints = tainted.spec.taints
    assert (
        prepare_estimate(NodeState(made), make_csinode("n").driver(DISK, 8).obj(), 1)
        is NodeReadiness.NOT_STARTED
    )


def test_a_node_that_is_to_have_a_gpu_is_starting_until_it_has_it() -> None:
    promise = ReadinessCriteria(gpu_label="gpu")
    member = NodeState(node({"gpu": "a100"}))
    assert prepare_estimate(member, None, 1, promise) is NodeReadiness.NOT_STARTED
    member.node.status.allocatable = {"nvidia.com/gpu": 1}
    assert prepare_estimate(member, None, 2, promise) is NodeReadiness.READY
    assert (
        prepare_estimate(NodeState(node({"gpu": "a100"})), None, 1, ReadinessCriteria())
        is NodeReadiness.READY
    )


def test_a_ready_node_waits_for_its_driver_and_is_late_after_ten_minutes() -> None:
    member = NodeState(node())
    assert prepare_estimate(member, None, 1) is NodeReadiness.AWAITING_DRIVERS
    assert member.missing == (DISK,)
    assert prepare_estimate(member, make_csinode("n").obj(), 9.9) is NodeReadiness.AWAITING_DRIVERS
    assert prepare_estimate(member, None, 10) is NodeReadiness.MISSING_DRIVERS
    assert prepare_estimate(member, None, 1000) is NodeReadiness.MISSING_DRIVERS
    assert (
        prepare_estimate(member, make_csinode("n").driver(DISK, 8).obj(), 1001)
        is NodeReadiness.READY
    )


def test_a_driver_that_reports_no_limit_has_registered() -> None:
    reports = make_csinode("n").driver(DISK).obj()
    assert prepare_estimate(NodeState(node()), reports, 1) is NodeReadiness.READY


def test_that_a_node_was_complete_survives_a_restart() -> None:
    made = node()
    made.metadata.annotations = {DRIVERS_REGISTERED: timestamp(after(1))}
    assert prepare_estimate(NodeState(made), None, 15) is NodeReadiness.READY
    assert prepare_estimate(NodeState(node()), None, 15) is NodeReadiness.MISSING_DRIVERS


def test_a_node_that_was_complete_once_is_never_late_for_a_driver() -> None:
    member = NodeState(node())
    assert (
        prepare_estimate(member, make_csinode("n").driver(DISK, 8).obj(), 1) is NodeReadiness.READY
    )
    assert prepare_estimate(member, None, 60) is NodeReadiness.READY


def test_a_node_that_had_long_been_ready_when_first_seen_is_not_late() -> None:
    assert prepare_estimate(NodeState(node()), None, 20) is NodeReadiness.READY
    assert prepare_estimate(NodeState(node()), None, 19.9) is NodeReadiness.MISSING_DRIVERS


def test_without_a_template_labels_say_what_to_wait_for() -> None:
    nothing = ReadinessCriteria()
    one = NodeState(node({DRIVER_LABEL: DISK}))
    assert prepare_estimate(one, None, 1, nothing) is NodeReadiness.AWAITING_DRIVERS
    assert (
        prepare_estimate(one, make_csinode("n").driver(DISK).obj(), 2, nothing)
        is NodeReadiness.READY
    )
    several = NodeState(node({f"{DRIVER_PREFIX}{DISK}": "", f"{DRIVER_PREFIX}{FILES}": ""}))
    assert (
        prepare_estimate(several, make_csinode("n").driver(DISK, 1).obj(), 1, nothing)
        is NodeReadiness.AWAITING_DRIVERS
    )
    assert several.missing == (FILES,)
    assert prepare_estimate(several, None, 10, nothing) is NodeReadiness.MISSING_DRIVERS


def test_drivers_that_are_only_hoped_for_are_waited_for_and_not_missed() -> None:
    optional_drivers = ReadinessCriteria(optional_drivers=frozenset({DISK}))
    member = NodeState(node())
    assert prepare_estimate(member, None, 1, optional_drivers) is NodeReadiness.AWAITING_DRIVERS
    assert prepare_estimate(member, None, 10, optional_drivers) is NodeReadiness.READY
    assert member.complete


def test_a_promise_of_zero_volumes_is_kept_by_reporting_zero() -> None:
    assert (
        prepare_estimate(NodeState(node()), make_csinode("n").driver(DISK, 0).obj(), 1)
        is NodeReadiness.READY
    )


@pytest.mark.parametrize("minutes", [0, 5, 100])
def test_with_the_gate_off_drivers_do_not_matter(minutes: float) -> None:
    member = NodeState(node({DRIVER_LABEL: DISK}))
    assert (
        prepare_estimate(member, None, minutes, ReadinessCriteria(waits_for_drivers=False))
        is NodeReadiness.READY
    )
    assert not member.complete  # it is asked again once the gate is on


def standing_of(
    fleet: NodeStates, promises: Mapping[str, ReadinessCriteria], minutes: float
) -> NodeReadiness:
    fleet.update(promises, after(minutes))
    return fleet.members["n"].readiness


def test_a_node_whose_group_is_known_only_later_waits_for_what_the_group_promises() -> None:
    fleet = NodeStates(OPTIONS, lambda _: None)
    made = node()
    made.spec.provider_id = "cloud://n"
    fleet.on_event(ClusterEvent.of(None, made))
    assert standing_of(fleet, {}, 0) is NodeReadiness.READY
    fleet.assign({"cloud://n": "workers"})
    assert standing_of(fleet, {"workers": PROMISED}, 1) is NodeReadiness.AWAITING_DRIVERS


def test_a_node_that_has_long_served_is_not_late_once_its_group_is_known() -> None:
    fleet = NodeStates(OPTIONS, lambda _: None)
    made = node()
    made.spec.provider_id = "cloud://n"
    fleet.on_event(ClusterEvent.of(None, made))
    assert standing_of(fleet, {}, 100) is NodeReadiness.READY
    fleet.assign({"cloud://n": "workers"})
    assert standing_of(fleet, {"workers": PROMISED}, 101) is NodeReadiness.READY
