"""How many nodes go at once, and when none does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown import Deletions, NodeToBeRemoved
from bayplan.autoscaler.scaledown.removable import Cooldowns, CooldownTrigger, crop_nodes
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.nodegroups import CloudNodeGroup, GroupOptions
from tests.autoscaler.cluster_views import NOW
from tests.builders import make_pod

ATOMIC = GroupOptions(zero_or_max_node_scaling=True)
NONE = Deletions()


def empty(*names: str) -> list[NodeToBeRemoved]:
    return [NodeToBeRemoved(name) for name in names]


def full(*names: str) -> list[NodeToBeRemoved]:
    return [NodeToBeRemoved(name, ((make_pod(f"p-{name}").obj(), "other"),)) for name in names]


def taken(
    going: Sequence[NodeToBeRemoved], deletions: Deletions = NONE, **options: int
) -> list[str]:
    """Those that go now; nodes are named after their group, those of group `w` go as one."""
    group_of = {one.node: one.node[0] for one in going}
    groups = {
        name: NodeGroupView(
            CloudNodeGroup(name, 0, 100), 50, options=ATOMIC if name == "w" else GroupOptions()
        )
        for name in set(group_of.values())
    }
    given = AutoscalerOptions(**options)  # type: ignore[arg-type]
    batches = crop_nodes(going, group_of, groups, given, deletions)
    return sorted(one.node for batch in batches for one in batch.nodes)


def test_ten_nodes_go_at_once_and_one_of_them_is_drained() -> None:
    going = [*empty(*(f"a{n:02}" for n in range(12))), *full("b1", "b2")]
    assert taken(going) == [f"a{n:02}" for n in range(10)]
    assert taken([*empty("a1", "a2"), *full("b1", "b2")]) == ["a1", "a2", "b1"]


def test_deletions_under_way_count() -> None:
    under_way = Deletions(empty={f"x{n}": "a" for n in range(8)}, drained={"y": "a"})
    assert taken([*empty("a1", "a2"), *full("b1")], under_way) == ["a1"]


def test_flags_say_how_many() -> None:
    going = full("b1", "b2", "b3")
    assert taken(going, max_drain_parallelism=2) == ["b1", "b2"]
    assert taken(going, max_drain_parallelism=5, max_scale_down_parallelism=1) == ["b1"]


def test_a_group_that_goes_as_a_whole_may_go_beyond_the_budget_once() -> None:
    whole = [*empty(*(f"w{n:02}" for n in range(12))), *full("w12")]
    assert len(taken(whole)) == 13
    assert taken(whole, Deletions(drained={"y": "a"})) == []


def test_after_a_purchase_a_deletion_and_a_failure_nothing_goes_for_a_while() -> None:
    options = AutoscalerOptions()
    for activity, seconds in (
        (CooldownTrigger.ADD, 600),
        (CooldownTrigger.FAILURE, 180),
        (CooldownTrigger.DELETE, 10),
    ):
        cooldowns = Cooldowns()
        assert not cooldowns.in_cluster(NOW, options)
        cooldowns.record(activity, "a", NOW)
        just_before = NOW + timedelta(seconds=seconds - 1)
        assert activity.value in cooldowns.in_cluster(just_before, options)
        assert not cooldowns.in_cluster(NOW + timedelta(seconds=seconds), options)


def test_delays_can_hold_for_a_group_alone() -> None:
    options = AutoscalerOptions(scale_down_delay_type_local=True)
    cooldowns = Cooldowns()
    cooldowns.record(CooldownTrigger.ADD, "a", NOW)
    assert not cooldowns.in_cluster(NOW, options)
    assert cooldowns.of_group("a", NOW, options)
    assert not cooldowns.of_group("b", NOW, options)
    assert not cooldowns.of_group("a", NOW, AutoscalerOptions())
