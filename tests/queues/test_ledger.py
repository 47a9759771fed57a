"""The books of queues: room, reservations, and what was decided and not seen yet."""

from __future__ import annotations

from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from bayplan.queues import Ledger, Resources, TaskStatus, WaitCode
from tests.builders import PodBuilder, make_pod, make_pod_group, make_queue


def _ledger() -> Ledger:
    """`a` and `b` may have 4 cores each, 6 together."""
    ledger = Ledger()
    ledger.put_queue(make_queue("team").capability(cpu="6").obj())
    ledger.put_queue(make_queue("a").parent("team").capability(cpu="4").obj())
    ledger.put_queue(make_queue("b").parent("team").capability(cpu="4").obj())
    return ledger


def _pod(name: str, group: str, cpu: str) -> PodBuilder:
    return make_pod_group(group).member(make_pod(name).cpu(cpu))


def _opted_in(pod: PodBuilder) -> PodBuilder:
    return pod.annotation(QUEUE_SCHEDULING_GATE, "true")


def test_what_pods_have_counts_in_their_queue_and_above() -> None:
    ledger = _ledger()
    ledger.put_group(make_pod_group("g").queue("a").phase("Running").obj())
    ledger.put_pod(_pod("p", "g", "3").node("n").obj())
    ledger.put_pod(_pod("q", "g", "1").obj())
    for queue in ("a", "team", "root"):
        usage = ledger.usage(queue)
        assert (usage.allocated["cpu"], usage.request["cpu"]) == (3000, 4000)
    assert ledger.usage("b").request["cpu"] == 0


def test_a_pod_may_come_before_its_group() -> None:
    ledger = _ledger()
    ledger.put_pod(_pod("p", "g", "3").node("n").obj())
    assert ledger.usage("a").allocated["cpu"] == 0
    ledger.put_group(make_pod_group("g").queue("a").obj())
    assert ledger.usage("a").allocated["cpu"] == 3000
    ledger.delete_group("default/g")
    assert ledger.usage("a").allocated["cpu"] == 0
    ledger.delete_pod("default/p")
    assert ledger.groups == {}


def test_reservations_count_in_the_leaf_and_on_every_ancestor() -> None:
    ledger = _ledger()
    ledger.put_group(make_pod_group("g").queue("a").obj())
    ledger.put_group(make_pod_group("h").queue("b").obj())
    reserved = ledger.put_pod(_opted_in(_pod("p", "g", "3")).obj())
    assert reserved.reserved
    assert ledger.may_allocate(reserved) is None
    refused = ledger.may_allocate(ledger.put_pod(_pod("q", "h", "4").obj()))
    assert refused is not None
    assert (refused.code, refused.queue, refused.resources) == (WaitCode.QUOTA, "team", ("cpu",))
    assert str(refused) == "queue team has 3 cpu left of its quota, and 4 cpu is asked for"
    ledger.release(reserved)
    assert ledger.may_allocate(ledger.members["default/q"]) is None


def test_a_reservation_holds_while_its_gate_goes_and_until_it_is_given_back() -> None:
    ledger = _ledger()
    ledger.put_group(make_pod_group("g").queue("a").obj())
    gated = _opted_in(_pod("p", "g", "3")).uid("u").gate(QUEUE_SCHEDULING_GATE).obj()
    ledger.reserve(ledger.put_pod(gated))
    ungated = _opted_in(_pod("p", "g", "3")).uid("u").obj()
    assert ledger.put_pod(ungated).reserved
    ledger.release(ledger.members["default/p"])
    assert not ledger.put_pod(ungated).reserved
    recreated = _opted_in(_pod("p", "g", "3")).uid("other").gate(QUEUE_SCHEDULING_GATE).obj()
    assert not ledger.put_pod(recreated).reserved


def test_a_placement_holds_until_the_pod_itself_speaks() -> None:
    ledger = _ledger()
    ledger.put_group(make_pod_group("g").queue("a").obj())
    member = ledger.put_pod(_pod("p", "g", "3").uid("u").obj())
    ledger.move(member, TaskStatus.BINDING)
    assert ledger.put_pod(_pod("p", "g", "3").uid("u").obj()).status is TaskStatus.BINDING
    ended = _pod("p", "g", "3").uid("u").phase("Succeeded").obj()
    assert ledger.put_pod(ended).status is TaskStatus.SUCCEEDED
    assert ledger.usage("team").allocated["cpu"] == 0


def test_a_group_is_admitted_beside_what_earlier_ones_were_promised() -> None:
    ledger = _ledger()
    first = ledger.put_group(make_pod_group("g").queue("a").min_resources(cpu="3").obj())
    second = ledger.put_group(make_pod_group("h").queue("a").min_resources(cpu="2").obj())
    assert ledger.may_enqueue(second) is None
    ledger.admit(first)
    refused = ledger.may_enqueue(second)
    assert refused is not None
    assert refused.queue == "a"
    assert ledger.put_group(first.podgroup).phase == "Inqueue"
    ledger.take_freed()
    ledger.delete_group(first.key)
    assert ledger.take_freed() == {"a", "team", "root"}
    assert ledger.may_enqueue(second) is None


def test_bad_groups_wait_and_say_why() -> None:
    ledger = _ledger()
    group = ledger.put_group(
        make_pod_group("g").queue("a").min_member(-1).min_resources(cpu="-2").obj()
    )
    refused = ledger.may_enqueue(group)
    assert refused is not None
    assert refused.code is WaitCode.BAD_GROUP
    assert "minMember: -1" in refused.text
    assert "minResources: cpu" in refused.text


def test_room_comes_free_in_a_queue_and_above_it_and_not_elsewhere() -> None:
    ledger = _ledger()
    ledger.put_queue(make_queue("other").obj())
    ledger.put_group(make_pod_group("g").queue("a").obj())
    ledger.put_pod(_pod("p", "g", "3").node("n").obj())
    ledger.take_freed()
    ledger.put_pod(_pod("q", "g", "1").node("n").obj())
    assert ledger.take_freed() == set()
    ledger.delete_pod("default/p")
    assert ledger.take_freed() == {"a", "team", "root"}


def test_a_queues_status_changes_no_sums() -> None:
    ledger = _ledger()
    ledger.put_group(make_pod_group("g").queue("a").obj())
    ledger.put_pod(_pod("p", "g", "3").node("n").obj())
    accounts = ledger.accounts
    ledger.put_queue(make_queue("a").parent("team").capability(cpu="4").state("Closed").obj())
    assert ledger.accounts is accounts
    refused = ledger.may_enqueue(ledger.groups["default/g"])
    assert refused is not None
    assert refused.code is WaitCode.CLOSED


def test_a_queue_that_opens_lets_those_below_it_ask_again() -> None:
    ledger = _ledger()
    team = make_queue("team").capability(cpu="6")
    ledger.put_queue(team.state("Closed").obj())
    group = ledger.put_group(make_pod_group("g").queue("a").obj())
    refused = ledger.may_enqueue(group)
    assert refused is not None
    assert refused.code is WaitCode.CLOSED
    ledger.take_freed()
    ledger.put_queue(make_queue("team").capability(cpu="6").state("Open").obj())
    assert ledger.take_freed() == {"team", "a", "b"}
    assert ledger.may_enqueue(group) is None


def test_a_share_is_the_largest_part_of_what_is_deserved() -> None:
    ledger = Ledger()
    ledger.put_queue(make_queue("a").deserved(cpu="4", memory="8Gi").obj())
    ledger.put_group(make_pod_group("g").queue("a").obj())
    ledger.put_pod(_pod("p", "g", "1").memory("6Gi").node("n").obj())
    assert ledger.share("a") == 0.75
    assert ledger.share("default") == 1


def test_weights_share_what_there_is_and_leave_nothing_unused() -> None:
    ledger = Ledger(policy="proportion")
    ledger.set_shared(Resources({"cpu": 9000}))
    for name, weight, cpu in (("a", 1, "9"), ("b", 2, "9"), ("c", 3, "1")):
        ledger.put_queue(make_queue(name).weight(weight).obj())
        ledger.put_group(make_pod_group(name).queue(name).obj())
        ledger.put_pod(_pod(name, name, cpu).obj())
    deserved = {name: round(ledger.quota(name).deserved["cpu"]) for name in "abc"}
    assert deserved == {"a": 2667, "b": 5333, "c": 1000}
    member = ledger.members["default/a"]
    over = ledger.check_share(ledger.groups["default/a"], member.request)
    assert over is not None
    assert over.code is WaitCode.SHARE
    assert ledger.may_allocate(member) is None
