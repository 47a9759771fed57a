"""What of a group has come, what is on its way, and what never will."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness
from bayplan.autoscaler.clusterstate.registry import (
    ClusterStateRegistry,
    UpcomingNodes,
    group_by_provider_id,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.nodes import Node
from bayplan.kube.times import timestamp
from bayplan.nodegroups import (
    CloudNodeGroup,
    ErrorClass,
    GroupOptions,
    Instance,
    InstanceError,
    InstanceState,
)
from tests.autoscaler.cluster_views import NOW
from tests.builders import make_node

pytestmark = pytest.mark.whole


OPTIONS = AutoscalerOptions()
BROKEN = InstanceError(ErrorClass.OUT_OF_RESOURCES, "STOCK", "none left")


def instance(number: int, state: InstanceState = InstanceState.RUNNING) -> Instance:
    return Instance(f"cloud://{number}", state)


class GroupFixture:
    """A group, its nodes, and time that goes by."""

    def __init__(self) -> None:
        self.node_states = NodeStates(OPTIONS, lambda _: None)
        self.registry = ClusterStateRegistry(OPTIONS)
        self.now = NOW
        self.instances: list[Instance] = []
        self.target: int | None = None

    def node(self, number: int, ready: str = "True", uid: str = "") -> Node:
        made = make_node(f"n{number}").uid(uid or f"u{number}").created(timestamp(self.now))
        return made.provider_id(f"cloud://{number}").ready(ready).obj()

    def register(self, number: int, ready: str = "True") -> None:
        self.node_states.on_event(ClusterEvent.of(None, self.node(number, ready)))

    def prepare_estimate(self) -> UpcomingNodes:
        target = len(self.instances) if self.target is None else self.target
        group, options = CloudNodeGroup("g", 0, 100), GroupOptions()
        cloud = CloudState({"g": NodeGroupInfo(group, target, tuple(self.instances), options)})
        self.node_states.assign(group_by_provider_id(cloud.groups.values()))
        self.node_states.update({}, self.now)
        self.registry.update(cloud, self.node_states, self.now)
        return self.registry.states["g"].upcoming

    def forward(self, minutes: float) -> datetime:
        self.now += timedelta(minutes=minutes)
        return self.now


def test_instances_are_upcoming_until_their_nodes_are_ready() -> None:
    place = GroupFixture()
    place.instances = [instance(1), instance(2), instance(3)]
    assert place.prepare_estimate() == UpcomingNodes(3)
    place.register(1, ready="False")
    assert place.prepare_estimate() == UpcomingNodes(2, ("n1",))
    place.register(1)
    place.register(2)
    assert place.prepare_estimate() == UpcomingNodes(1)
    assert place.registry.states["g"].ready == 2


def test_an_instance_that_does_not_register_in_time_is_upcoming_no_more() -> None:
    place = GroupFixture()
    place.instances = [instance(1)]
    place.prepare_estimate()
    place.forward(15)
    assert len(place.prepare_estimate()) == 1
    place.forward(0.1)
    assert len(place.prepare_estimate()) == 0
    assert place.registry.states["g"].long_unregistered == (instance(1),)


def test_an_instance_that_failed_is_not_upcoming() -> None:
    place = GroupFixture()
    place.instances = [Instance("cloud://1", InstanceState.CREATING, BROKEN), instance(2)]
    assert place.prepare_estimate() == UpcomingNodes(1)
    assert len(place.registry.states["g"].failed) == 1


def test_a_target_without_instances_is_upcoming_and_then_a_shortfall() -> None:
    place = GroupFixture()
    place.target = 2
    assert place.prepare_estimate() == UpcomingNodes(2)
    since = place.now
    place.forward(5)
    place.prepare_estimate()
    assert place.registry.shortfalls["g"].since == since
    place.instances = [instance(1), instance(2)]
    place.prepare_estimate()
    assert not place.registry.shortfalls


def test_a_node_whose_instance_is_on_its_way_out_counts_nowhere() -> None:
    place = GroupFixture()
    place.instances = [instance(1), instance(2, InstanceState.DELETING)]
    place.target = 1
    place.register(1)
    place.register(2)
    assert place.prepare_estimate() == UpcomingNodes()
    assert place.registry.states["g"].ready == 1
    assert dict(place.node_states.group_of) == {"n1": "g"}


def test_a_node_that_is_unready_for_long_has_come_all_the_same() -> None:
    place = GroupFixture()
    place.instances = [instance(1)]
    place.register(1, ready="False")
    place.prepare_estimate()
    place.forward(15)
    assert place.prepare_estimate() == UpcomingNodes()
    assert place.registry.states["g"].unready == ("n1",)


def test_orders_end_when_all_has_come_or_time_is_up() -> None:
    place = GroupFixture()
    place.instances = [instance(1)]
    place.registry.register_scale_up("g", 1, 60.0, place.now)
    place.prepare_estimate()
    assert place.registry.update_scale_up_requests(place.now) == ([], [])
    place.register(1)
    place.prepare_estimate()
    assert place.registry.update_scale_up_requests(place.now) == (["g"], [])
    place.instances.append(instance(2))
    place.registry.register_scale_up("g", 1, 60.0, place.now)
    place.prepare_estimate()
    assert place.registry.update_scale_up_requests(place.forward(1.1)) == ([], ["g"])
    assert not place.registry.scale_up_requests


def test_a_cluster_with_too_many_unready_nodes_is_unhealthy() -> None:
    place = GroupFixture()
    for number in range(8):
        place.register(number, ready="False" if number < 4 else "True")
    place.forward(16)
    place.prepare_estimate()
    assert not place.registry.is_healthy(place.node_states)
    for number in (8, 9):
        place.register(number)
    place.prepare_estimate()
    assert place.registry.is_healthy(place.node_states)


@settings(max_examples=60)
@given(st.data())
def test_what_is_kept_is_what_would_be_worked_out_anew(data: st.DataObject) -> None:
    """Whatever comes and goes, in whatever order, the books say what fresh books would say."""
    place = GroupFixture()
    nodes: dict[int, Node] = {}
    for _ in range(data.draw(st.integers(1, 25))):
        number, ready = data.draw(st.integers(0, 5)), data.draw(st.sampled_from(["True", "False"]))
        match data.draw(st.sampled_from(["node", "new", "gone", "instances", "time"])):
            case "node" | "new" as how:
                uid = str(data.draw(st.integers(0, 10**6))) if how == "new" else f"u{number}"
                made = place.node(number, ready, uid)
                place.node_states.on_event(ClusterEvent.of(nodes.get(number), made))
                nodes[number] = made
            case "gone" if number in nodes:
                place.node_states.on_event(ClusterEvent.of(nodes.pop(number), None))
            case "instances":
                states = st.sampled_from(InstanceState)
                some = data.draw(st.dictionaries(st.integers(0, 5), states))
                place.instances = [instance(one, state) for one, state in some.items()]
            case "time":
                place.forward(data.draw(st.integers(0, 20)))
        place.prepare_estimate()
    _check_against_fresh_books(place, nodes)


def _check_against_fresh_books(place: GroupFixture, nodes: dict[int, Node]) -> None:
    fresh = GroupFixture()
    fresh.now, fresh.instances = place.now, place.instances
    for node in nodes.values():
        fresh.node_states.on_event(ClusterEvent.of(None, node))
    fresh.prepare_estimate()
    for readiness in NodeReadiness:
        assert sorted(place.node_states.in_state(readiness)) == sorted(
            fresh.node_states.in_state(readiness)
        )
    assert place.node_states.group_of == fresh.node_states.group_of
    assert place.node_states.by_provider == fresh.node_states.by_provider
    ours, theirs = place.registry.states["g"], fresh.registry.states["g"]
    assert (ours.ready, set(ours.not_started), ours.unready) == (
        theirs.ready,
        set(theirs.not_started),
        theirs.unready,
    )
    unregistered = {*ours.unregistered, *ours.long_unregistered}
    assert unregistered == {*theirs.unregistered, *theirs.long_unregistered}
