"""Which nodes are given back, and why the others are not."""

from __future__ import annotations

from dataclasses import replace

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown import Deletions, Planner
from bayplan.nodegroups import GroupOptions
from tests.autoscaler.scaledown.clusters import (
    GROUP,
    cluster,
    names,
    node,
    planned,
    pod,
    scale_down_context,
    why,
)
from tests.builders import make_csinode, make_pdb, make_pod, make_pv, make_pvc, selector

DISK = "disk.csi.example.com"
AT_ONCE = AutoscalerOptions(scale_down_unneeded_time=0, scale_down_unready_time=0)


def test_a_node_goes_once_it_has_been_unneeded_for_long_enough() -> None:
    view = cluster(node("a").obj(), node("b").obj(), pod("p", "a", "3").obj())
    planner = Planner()
    first = planned(planner, view)
    assert (names(first.removable), first.to_remove) == (["b"], ())
    assert why(first) == {"a": "NotUnderutilized", "b": "NotUnneededLongEnough"}
    assert not planned(planner, view, after=600).to_remove
    assert names(planned(planner, view, after=601).to_remove) == ["b"]


def test_a_node_that_was_needed_in_between_starts_anew() -> None:
    busy, spare = node("a").obj(), node("b").obj()
    view = cluster(busy, spare, pod("p", "a", "3").obj())
    planner = Planner()
    planned(planner, view)
    view.snapshot.put(pod("q", "b", "3").obj())
    assert "b" not in planned(planner, view, after=300).unneeded
    view.snapshot.put(pod("q", "b", "100m").obj())
    assert not planned(planner, view, after=700).to_remove


def test_an_unready_node_has_a_time_of_its_own() -> None:
    view = cluster(node("a").obj(), node("b").ready("False").obj(), pod("p", "a", "3").obj())
    planner = Planner()
    assert why(planned(planner, view))["b"] == "NotUnreadyLongEnough"
    assert not planned(planner, view, after=700).to_remove
    assert names(planned(planner, view, after=1201).to_remove) == ["b"]


def test_pods_that_move_have_places_that_do_not_count_twice() -> None:
    """Two half-empty nodes, and room on the third for the pods of one."""
    view = cluster(
        *(node(name).obj() for name in "abc"),
        *(pod(f"p{n}", "a", "1500m").obj() for n in range(2)),
        *(pod(f"q{n}", "b", "700m").obj() for n in range(2)),
        *(pod(f"r{n}", "c", "600m").obj() for n in range(2)),
        options=AT_ONCE,
    )
    plan = planned(Planner(), view)
    assert names(plan.to_remove) == ["c"]
    assert why(plan) == {"a": "NotUnderutilized", "b": "NoPlaceToMovePods"}


def test_a_group_keeps_its_least() -> None:
    nodes = [node(name).obj() for name in "abc"]
    plan = planned(Planner(), cluster(*nodes, least=2, options=AT_ONCE))
    assert len(plan.to_remove) == 1
    assert sorted(why(plan).values()) == ["NodeGroupMinSizeReached"] * 2


def test_deletions_under_way_count_for_the_least_of_a_group() -> None:
    nodes = [node(name).obj() for name in "abc"]
    view = cluster(*nodes, least=1, options=AT_ONCE)
    given = replace(scale_down_context(view), deletions=Deletions(empty={"a": GROUP}))
    plan = Planner().plan(view, given)
    assert len(plan.to_remove) == 1
    assert why(plan)["a"] == "CurrentlyBeingDeleted"


def test_the_cluster_keeps_its_least_of_a_resource() -> None:
    options = replace(AT_ONCE, cores_total="8:100")
    plan = planned(Planner(), cluster(*(node(name).obj() for name in "abc"), options=options))
    assert len(plan.to_remove) == 1
    assert sorted(why(plan).values()) == ["MinimalResourceLimitExceeded"] * 2


def test_a_group_that_goes_as_a_whole_goes_whole_or_not_at_all() -> None:
    wishes = GroupOptions(scale_down_unneeded_time=0, zero_or_max_node_scaling=True)
    spare = [node(name).obj() for name in "ab"]
    whole = planned(Planner(), cluster(*spare, wishes=wishes))
    assert sorted(names(whole.to_remove)) == ["a", "b"]
    kept = planned(Planner(), cluster(*spare, pod("p", "a", "3").obj(), wishes=wishes))
    assert why(kept) == {"a": "NotUnderutilized", "b": "AtomicScaleDownFailed"}


def test_a_pod_that_is_to_end_by_itself_keeps_its_node() -> None:
    lasting = (
        make_pod("job")
        .node("b")
        .annotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "on-completion")
    )
    view = cluster(node("b").obj(), lasting.obj(), options=AT_ONCE)
    plan = planned(Planner(), view)
    assert (plan.to_remove, why(plan)) == ((), {"b": "BlockedByOnCompletionPod"})


def test_budgets_are_spent_from_node_to_node() -> None:
    view = cluster(
        *(node(name).obj() for name in "abc"),
        pod("p", "a").obj(),
        pod("q", "b").obj(),
        make_pdb("budget", selector(app="web")).allows(1).obj(),
        pod("r", "c", "3").obj(),
        options=AT_ONCE,
    )
    plan = planned(Planner(), view)
    assert names(plan.to_remove) == ["a"]
    blocked = next(one for one in plan.unremovable if one.node == "b")
    assert str(blocked) == "BlockedByPod default/q (NotEnoughPdb)"


def test_a_node_that_could_not_go_is_not_asked_again_for_a_while_and_says_why() -> None:
    view = cluster(node("a").obj(), make_pod("bare").node("a").obj(), options=AT_ONCE)
    planner = Planner()
    assert why(planned(planner, view)) == {"a": "BlockedByPod"}
    (again,) = planned(planner, view, after=60).unremovable
    assert str(again) == "RecentlyUnremovable default/bare (NotReplicated): BlockedByPod"
    view.snapshot.delete(type(make_pod("bare").obj()), "default/bare")
    assert names(planned(planner, view, after=301).to_remove) == ["a"]


def test_volumes_need_places_too() -> None:
    """Either node could take the other's pod, but for the places for volumes."""

    def with_limit(limit: int) -> list[str]:
        view = cluster(
            node("a").obj(),
            node("b").obj(),
            make_csinode("a").driver(DISK, limit).obj(),
            make_csinode("b").driver(DISK, limit).obj(),
            *(make_pvc(name).volume(f"pv-{name}").obj() for name in "xy"),
            *(make_pv(f"pv-{name}").csi(DISK, name).bound_to(name).obj() for name in "xy"),
            pod("p", "a").claim("x").obj(),
            pod("q", "b").claim("y").obj(),
            options=AT_ONCE,
        )
        return names(planned(Planner(), view).to_remove)

    assert with_limit(2) == ["a"]
    assert with_limit(1) == []


def test_nodes_full_of_volumes_are_emptied_last() -> None:
    """Both are used alike but for their volumes, and only one has to stay."""
    view = cluster(
        node("a").obj(),
        node("b").obj(),
        make_csinode("a").driver(DISK, 3).obj(),
        make_csinode("b").driver(DISK, 3).obj(),
        *(make_pvc(name).volume(f"pv-{name}").obj() for name in "xyz"),
        *(make_pv(f"pv-{name}").csi(DISK, name).bound_to(name).obj() for name in "xyz"),
        pod("p", "a").claim("x").claim("y").obj(),
        pod("q", "b").claim("z").obj(),
        options=AT_ONCE,
    )
    plan = planned(Planner(), view)
    assert names(plan.to_remove) == ["b"]
    assert plan.utilization["a"].volumes == {DISK: 2 / 3}


def test_nodes_that_are_drained_now_take_their_pods_places_with_them() -> None:
    view = cluster(
        *(node(name).obj() for name in "abc"),
        pod("p", "a", "1500m").obj(),
        pod("q", "b", "1500m").obj(),
        pod("r", "c", "2200m").obj(),
        options=AT_ONCE,
    )
    assert len(planned(Planner(), view).to_remove) == 1
    given = replace(scale_down_context(view), deletions=Deletions(drained={"a": GROUP}))
    assert Planner().plan(view, given).to_remove == ()


def test_a_node_that_a_waiting_pod_will_use_is_needed() -> None:
    waiting = make_pod("w").cpu("3").obj()
    view = cluster(node("a").obj(), node("b").obj(), waiting, options=AT_ONCE)
    given = replace(scale_down_context(view), fits={waiting.key: "a"})
    plan = Planner().plan(view, given)
    assert names(plan.to_remove) == ["b"]


def test_a_cordoned_node_takes_no_pods() -> None:
    tolerant = pod("p", "a").toleration("")
    view = cluster(node("a").obj(), node("b").unschedulable().obj(), tolerant.obj(), least=0)
    assert why(planned(Planner(), view))["a"] == "NoPlaceToMovePods"


def test_a_search_that_takes_too_long_ends() -> None:
    ticks = iter(range(0, 1000, 20))
    nodes = [node(f"n{n}").obj() for n in range(5)]
    view = cluster(*nodes, options=AT_ONCE)
    plan = planned(Planner(monotonic=lambda: float(next(ticks))), view)
    assert len(plan.removable) == 1
    assert list(why(plan).values()) == ["NotUnneededOtherReason"] * 4
