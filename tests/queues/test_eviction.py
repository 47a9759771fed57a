"""Making room: in the same queue, and in others."""

from __future__ import annotations

from bayplan.kube.meta import KubeObject
from bayplan.queues import TaskStatus
from bayplan.queues.actions.eviction import preempt_for, reclaim_for
from bayplan.queues.rules import VOLCANO
from tests.builders import make_pod_group, make_priority_class, make_queue
from tests.queues.clusters import Cluster, gang, member, node

HIGH = make_priority_class("high", 100).obj()


def _running(group: str, pods: int, cpu: str = "1", on: str = "n") -> list[KubeObject]:
    return [member(group, number, cpu).node(on).obj() for number in range(pods)]


def test_a_group_takes_room_from_lesser_ones_of_its_queue_down_to_what_they_need() -> None:
    cluster = Cluster(
        [
            HIGH,
            make_queue("q").capability(cpu="4").obj(),
            node("n", "8"),
            make_pod_group("low").queue("q").min_member(2).phase("Running").obj(),
            make_pod_group("high").queue("q").priority_class("high").min_member(2).obj(),
            *_running("low", 4),
            *gang("high", 2),
        ]
    )
    plan = cluster.act()
    assert sorted(one.pod for one in plan.evicted) == ["default/low-w-2", "default/low-w-3"]
    assert {one.action for one in plan.evicted} == {"preempt"}
    # Who leaves holds its quota until it is gone: gates go then.
    assert plan.ungated == []
    assert sorted(one.pod for one in plan.pipelined) == ["default/high-w-0", "default/high-w-1"]
    assert cluster.ledger.usage("q").held["cpu"] == 4000


def test_what_a_gang_needs_nobody_takes_and_nothing_is_left_of_the_attempt() -> None:
    cluster = Cluster(
        [
            HIGH,
            make_queue("q").capability(cpu="4").obj(),
            node("n", "8"),
            make_pod_group("low").queue("q").min_member(3).phase("Running").obj(),
            make_pod_group("high").queue("q").priority_class("high").min_member(2).obj(),
            *_running("low", 4),
            *gang("high", 2),
        ]
    )
    session = cluster.session()
    cluster.ledger.admit(cluster.ledger.groups["default/high"])
    assert not preempt_for(session, cluster.ledger.groups["default/high"])
    assert session.plan.evicted == []
    assert cluster.ledger.usage("q").allocated["cpu"] == 4000
    assert cluster.status("low-w-3") is TaskStatus.RUNNING


def _two_queues(**deserved: str) -> list[KubeObject]:
    return [make_queue(name).deserved(cpu=cpu).obj() for name, cpu in deserved.items()]


def test_a_queue_takes_back_what_it_deserves_and_no_more_than_others_have_too_much() -> None:
    cluster = Cluster(
        [
            *_two_queues(a="2", b="2"),
            node("n", "4"),
            make_pod_group("a").queue("a").phase("Running").obj(),
            make_pod_group("b").queue("b").min_member(3).obj(),
            *_running("a", 4),
            *gang("b", 3),
        ]
    )
    assert cluster.act().evicted == []
    cluster.put([make_pod_group("b").queue("b").min_member(2).obj()])
    plan = cluster.act()
    assert [one.pod for one in plan.evicted] == ["default/a-w-3", "default/a-w-2"]
    assert {one.action for one in plan.evicted} == {"reclaim"}


def test_a_queue_that_is_not_reclaimable_gives_nothing_back() -> None:
    queues = [
        make_queue("a").deserved(cpu="2").reclaimable(False).obj(),
        make_queue("b").deserved(cpu="2").obj(),
    ]
    groups = [
        make_pod_group("a").queue("a").phase("Running").obj(),
        make_pod_group("b").queue("b").obj(),
    ]
    cluster = Cluster([*queues, node("n", "4"), *groups, *_running("a", 4), *gang("b", 1)])
    assert cluster.act().evicted == []


def test_a_guarantee_stays_covered() -> None:
    queues = [
        make_queue("a").guarantee(cpu="3").obj(),
        make_queue("b").deserved(cpu="2").obj(),
    ]
    groups = [
        make_pod_group("a").queue("a").phase("Running").obj(),
        make_pod_group("b").queue("b").obj(),
    ]
    pods = [*_running("a", 4), *gang("b", 2)]
    cluster = Cluster([*queues, node("n", "4"), *groups, *pods])
    assert [one.pod for one in cluster.act().evicted] == ["default/a-w-3"]


def _below_a_full_parent() -> list[KubeObject]:
    return [
        make_queue("team").capability(cpu="2").obj(),
        make_queue("b").parent("team").deserved(cpu="2").obj(),
        make_queue("c").parent("team").reclaimable(False).obj(),
        make_queue("a").obj(),
        node("n", "4"),
        make_pod_group("a").queue("a").phase("Running").obj(),
        make_pod_group("c").queue("c").phase("Running").obj(),
        make_pod_group("b").queue("b").phase("Inqueue").obj(),
        *_running("a", 2),
        *_running("c", 2),
        member("b", 0).obj(),
    ]


def test_nobody_dies_for_a_pod_that_a_queue_above_does_not_let_run() -> None:
    ours = Cluster(_below_a_full_parent())
    assert not reclaim_for(ours.session(), ours.ledger.groups["default/b"])
    theirs = Cluster(_below_a_full_parent(), rules=VOLCANO)
    session = theirs.session()
    assert reclaim_for(session, theirs.ledger.groups["default/b"])
    assert len(session.plan.evicted) == 1


def test_nobody_is_evicted_where_a_node_has_room() -> None:
    objects = [
        *_two_queues(a="1", b="2"),
        node("n", "2"),
        node("o", "2"),
        make_pod_group("a").queue("a").phase("Running").obj(),
        make_pod_group("b").queue("b").phase("Inqueue").obj(),
        *_running("a", 2),
        member("b", 0).obj(),
    ]
    assert Cluster(objects).act("reclaim").evicted == []
    assert len(Cluster(objects, rules=VOLCANO).act("reclaim").evicted) == 1
