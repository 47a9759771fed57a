"""Letting pods through by quota, and placing them, whole gangs at a time."""

from __future__ import annotations

from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from bayplan.queues import TaskStatus, WaitCode
from bayplan.queues.rules import VOLCANO
from tests.builders import make_pod_group, make_queue
from tests.queues.clusters import Cluster, gang, gated, member, node

QUEUE = make_queue("q").capability(cpu="4").obj()


def test_quota_and_a_node_take_a_pod_so_its_gate_goes_and_it_is_placed() -> None:
    cluster = Cluster([QUEUE, node("n", "8"), make_pod_group("g").queue("q").obj(), *gang("g", 1)])
    plan = cluster.act()
    assert plan.admitted == ["default/g"]
    assert plan.ungated == ["default/g-w-0"]
    assert [(one.pod, one.node) for one in plan.placed] == [("default/g-w-0", "n")]
    assert cluster.ledger.usage("q").allocated["cpu"] == 1000


def test_quota_takes_a_pod_that_no_node_takes_and_holds_it_until_one_does() -> None:
    groups = [make_pod_group(name).queue("q").obj() for name in ("g", "h")]
    pods = [gated(member("g", 0, "3")), gated(member("h", 0, "2"))]
    cluster = Cluster([QUEUE, node("n", "2"), *groups, *pods])
    plan = cluster.act()
    assert (plan.ungated, plan.unplaced) == (["default/g-w-0"], ["default/g-w-0"])
    assert plan.placed == []
    assert plan.waiting["default/g"].code is WaitCode.NO_NODE
    assert plan.waiting["default/h"].code is WaitCode.QUOTA
    assert cluster.ledger.usage("root").reserved["cpu"] == 3000


def test_pods_that_ask_for_no_gate_hold_nothing_while_they_wait_for_a_node() -> None:
    groups = [make_pod_group(name).queue("q").obj() for name in ("g", "h")]
    pods = [member("g", 0, "3").obj(), member("h", 0, "2").obj()]
    plan = Cluster([QUEUE, node("n", "2"), *groups, *pods]).act("enqueue", "allocate")
    assert plan.unplaced == ["default/g-w-0"]
    assert [one.pod for one in plan.placed] == ["default/h-w-0"]


def test_without_nodes_quota_decides_alone_and_so_it_does_for_pods_larger_than_any_node() -> None:
    cluster = Cluster([QUEUE, make_pod_group("g").queue("q").obj(), *gang("g", 1, "4")])
    assert cluster.act().ungated == ["default/g-w-0"]


def test_over_quota_the_gate_stays_and_nothing_is_to_be_bought() -> None:
    cluster = Cluster(
        [QUEUE, node("n", "8"), make_pod_group("g").queue("q").obj(), *gang("g", 1, "5")]
    )
    plan = cluster.act()
    assert plan.ungated == plan.unplaced == []
    assert plan.waiting["default/g"].resources == ("cpu",)


def test_a_gang_is_let_through_whole_or_not_at_all() -> None:
    whole = make_pod_group("g").queue("q").min_member(3).obj()
    too_large = make_pod_group("h").queue("q").min_member(2).obj()
    pods = [*gang("g", 3), *gang("h", 2)]
    cluster = Cluster([QUEUE, node("n", "1"), whole, too_large, *pods])
    plan = cluster.act()
    assert sorted(plan.ungated) == [f"default/g-w-{number}" for number in range(3)]
    assert plan.placed == []
    assert cluster.snapshot.pods_on("n") == []
    assert plan.waiting["default/h"].code is WaitCode.QUOTA


def test_a_gang_takes_those_of_its_pods_that_can_run() -> None:
    group = make_pod_group("g").queue("q").min_member(2).obj()
    pods = [gated(member("g", 0, "9")), *(gated(member("g", n, "1")) for n in (1, 2))]
    cluster = Cluster([QUEUE, node("n", "8"), group, *pods])
    plan = cluster.act()
    assert sorted(one.pod for one in plan.placed) == ["default/g-w-1", "default/g-w-2"]
    assert sorted(plan.ungated) == ["default/g-w-1", "default/g-w-2"]


def test_a_group_needs_its_pods_of_each_task() -> None:
    group = make_pod_group("g").queue("q").min_member(3).min_task_member(ps=1, worker=2).obj()
    roles = ("worker", "worker", "worker", "ps")
    pods = [
        gated(member("g", n).annotation("volcano.sh/task-spec", r)) for n, r in enumerate(roles)
    ]
    cluster = Cluster([QUEUE, node("n", "3"), group, *pods[:3]])
    assert cluster.act().waiting["default/g"].code is WaitCode.NOT_ENOUGH_PODS_OF_TASK
    cluster.put(pods)
    placed = {one.pod for one in cluster.act().placed}
    assert placed == {"default/g-w-0", "default/g-w-1", "default/g-w-3"}


def test_a_pod_with_somebody_elses_gate_is_left_alone() -> None:
    pod = member("g", 0).annotation(QUEUE_SCHEDULING_GATE, "true").gate(QUEUE_SCHEDULING_GATE)
    group = make_pod_group("g").queue("q").obj()
    cluster = Cluster([QUEUE, node("n", "8"), group, pod.gate("example.com/hold").obj()])
    plan = cluster.act()
    assert (plan.ungated, plan.placed) == ([], [])
    assert plan.waiting["default/g"].code is WaitCode.FOREIGN_GATE


def test_our_gate_on_a_pod_that_does_not_ask_for_it_stays_by_volcanos_rules() -> None:
    group = make_pod_group("g").queue("q").obj()
    pod = member("g", 0).gate(QUEUE_SCHEDULING_GATE).obj()
    plan = Cluster([QUEUE, node("n", "8"), group, pod], rules=VOLCANO).act()
    assert (plan.ungated, plan.placed) == ([], [])


def test_our_gate_on_a_pod_that_does_not_ask_for_it_goes_by_quota_as_in_the_scheduler() -> None:
    group = make_pod_group("g").queue("q").obj()
    pod = member("g", 0).gate(QUEUE_SCHEDULING_GATE).obj()
    plan = Cluster([QUEUE, node("n", "8"), group, pod]).act()
    assert (plan.ungated, [one.pod for one in plan.placed]) == ([pod.key], [pod.key])


def test_pods_that_request_nothing_lose_their_gates_and_belong_to_their_gang() -> None:
    group = make_pod_group("g").queue("q").min_member(2).obj()
    pods = [gated(member("g", 0, "1")), gated(member("g", 1, "")), gated(member("g", 2, ""))]
    cluster = Cluster([QUEUE, node("n", "8"), group, *pods])
    plan = cluster.act()
    assert len(plan.placed) == len(plan.ungated) == 3
    lonely = Cluster([QUEUE, make_pod_group("g").queue("q").obj(), gated(member("g", 0, ""))])
    assert lonely.act().ungated == ["default/g-w-0"]


def test_pods_that_lost_their_gates_somehow_reserve_no_more_than_there_is() -> None:
    groups = [make_pod_group(name).queue("q").obj() for name in ("g", "h")]
    pods = [member(n, 0, "3").annotation(QUEUE_SCHEDULING_GATE, "true").obj() for n in ("g", "h")]
    cluster = Cluster([QUEUE, node("n", "8"), *groups, *pods])
    plan = cluster.act()
    assert [one.pod for one in plan.placed] == ["default/g-w-0"]
    assert plan.waiting["default/h"].code is WaitCode.QUOTA
    assert plan.unplaced == []
    stuck = Cluster([QUEUE, node("n", "8"), *groups, *pods], rules=VOLCANO)
    assert stuck.act().placed == []


def test_a_strict_queue_lets_nobody_overtake_and_others_do() -> None:
    for strict in (True, False):
        queue = make_queue("q").capability(cpu="4")
        first = make_pod_group("first").queue("q").created("2026-01-01T00:00:00Z").obj()
        second = make_pod_group("second").queue("q").created("2026-01-02T00:00:00Z").obj()
        pods = [*gang("first", 1, "5"), *gang("second", 1, "1")]
        objects = [(queue.fifo() if strict else queue).obj(), node("n", "8"), first, second]
        plan = Cluster([*objects, *pods]).act()
        if strict:
            assert plan.placed == []
            assert plan.waiting["default/second"].code is WaitCode.EARLIER_GROUP
        else:
            assert [one.pod for one in plan.placed] == ["default/second-w-0"]


def test_in_a_strict_queue_who_waits_for_a_node_holds_up_nobody() -> None:
    groups = [make_pod_group(name).queue("q").obj() for name in ("first", "second")]
    queue = make_queue("q").capability(cpu="8").fifo().obj()
    pods = [*gang("first", 1, "5"), *gang("second", 1, "1")]
    plan = Cluster([queue, node("n", "4"), *groups, *pods]).act()
    assert plan.unplaced == ["default/first-w-0"]
    assert [one.pod for one in plan.placed] == ["default/second-w-0"]


def test_a_group_that_one_pod_can_start_is_let_through_as_far_as_its_quota_goes() -> None:
    group = make_pod_group("g").queue("q").obj()
    plan = Cluster([QUEUE, group, *gang("g", 5)]).act()
    assert (len(plan.ungated), plan.waiting["default/g"].code) == (4, WaitCode.QUOTA)


def test_queues_take_turns_by_their_share_all_the_way_up() -> None:
    queues = [
        make_queue("x").deserved(cpu="4").obj(),
        make_queue("y").deserved(cpu="4").obj(),
        make_queue("x1").parent("x").deserved(cpu="2").obj(),
        make_queue("x2").parent("x").deserved(cpu="2").obj(),
        make_queue("y1").parent("y").deserved(cpu="2").obj(),
    ]
    groups = [make_pod_group(name).queue(name).min_member(1).obj() for name in ("x1", "x2", "y1")]
    pods = [pod for name in ("x1", "x2", "y1") for pod in gang(name, 4)]
    plan = Cluster([*queues, node("n", "4"), *groups, *pods]).act("enqueue", "allocate")
    assert [one.pod.split("/")[1][:2] for one in plan.placed] == ["x1", "y1", "x2", "y1"]


def test_whoever_waits_for_room_that_others_leave_keeps_its_node() -> None:
    leaving = member("old", 0, "2").node("n").terminating().obj()
    old = make_pod_group("old").queue("q").phase("Running").obj()
    new = make_pod_group("new").queue("q").min_member(2).obj()
    pods = [member("new", n, "1").obj() for n in (0, 1)]
    cluster = Cluster([QUEUE, node("n", "3"), old, leaving, new, *pods])
    plan = cluster.act()
    assert plan.placed == []
    assert sorted(one.pod for one in plan.pipelined) == ["default/new-w-0", "default/new-w-1"]
    assert cluster.status("new-w-1") in {TaskStatus.PIPELINED, TaskStatus.ALLOCATED}


def test_a_node_that_is_gone_is_kept_for_nobody_though_a_pod_still_leaves_it() -> None:
    leaving = member("old", 0, "2").node("gone").terminating().obj()
    groups = [make_pod_group(name).queue("q").obj() for name in ("old", "new")]
    cluster = Cluster([QUEUE, node("n", "1"), *groups, leaving, *gang("new", 1, "2")])
    plan = cluster.act()
    assert (plan.placed, plan.pipelined) == ([], [])
    assert plan.unplaced == ["default/new-w-0"]


def test_over_its_share_by_weight_a_queue_leaves_nodes_to_others_but_may_have_new_ones() -> None:
    queues = [make_queue("a").obj(), make_queue("b").obj()]
    groups = [make_pod_group(name).queue(name).obj() for name in "ab"]
    pods = [*gang("a", 3, "2"), *gang("b", 1, "2")]
    cluster = Cluster([*queues, node("n", "4"), *groups, *pods], policy="proportion")
    plan = cluster.act()
    assert sorted(one.pod for one in plan.placed) == ["default/a-w-0", "default/b-w-0"]
    assert sorted(plan.unplaced) == ["default/a-w-1", "default/a-w-2"]
