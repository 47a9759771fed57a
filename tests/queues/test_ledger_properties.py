"""Books that are kept change by change say what they would say if they were made anew."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from bayplan.queues import NOTHING, Ledger, Member, Resources, TaskStatus, Usage
from bayplan.queues.accounts import Accounts
from tests.builders import make_pod, make_pod_group, make_queue

pytestmark = pytest.mark.whole


QUEUES = ("a", "b", "c", "team")
GROUPS = ("g", "h", "i")
PHASES = ("Pending", "Inqueue", "Running")
some_cpu = st.sampled_from(["", "500m", "2"])
group_names = st.sampled_from(GROUPS)


class LedgerMachine(RuleBasedStateMachine):
    """Objects come and go, and decisions are made, in any order."""

    pods = Bundle("pods")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        for name in QUEUES:
            self.ledger.put_queue(make_queue(name).obj())

    @rule(name=st.sampled_from(QUEUES[:3]), parent=st.sampled_from(["", "team", "gone"]))
    def put_queue(self, name: str, parent: str) -> None:
        self.ledger.put_queue(make_queue(name).parent(parent).obj())

    @rule(name=st.sampled_from(QUEUES[:3]))
    def delete_queue(self, name: str) -> None:
        self.ledger.delete_queue(name)

    @rule(
        name=group_names,
        queue=st.sampled_from([*QUEUES, "gone"]),
        phase=st.sampled_from(PHASES),
        needs=some_cpu,
    )
    def put_group(self, name: str, queue: str, phase: str, needs: str) -> None:
        group = make_pod_group(name).queue(queue).phase(phase).min_member(2)
        self.ledger.put_group((group.min_resources(cpu=needs) if needs else group).obj())

    @rule(name=group_names)
    def delete_group(self, name: str) -> None:
        self.ledger.delete_group(f"default/{name}")

    @rule(
        target=pods,
        name=st.sampled_from("pqrs"),
        group=group_names,
        cpu=some_cpu,
        phase=st.sampled_from(["Pending", "Running", "Succeeded"]),
        opted_in=st.booleans(),
        gates=st.sampled_from([(), (QUEUE_SCHEDULING_GATE,), ("example.com/hold",)]),
    )
    def put_pod(
        self, name: str, group: str, cpu: str, phase: str, opted_in: bool, gates: tuple[str, ...]
    ) -> str:
        pod = make_pod_group(group).member(make_pod(name).uid(name).phase(phase))
        if cpu:
            pod.cpu(cpu)
        if opted_in:
            pod.annotation(QUEUE_SCHEDULING_GATE, "true")
        for gate in gates if phase == "Pending" else ():
            pod.gate(gate)
        return self.ledger.put_pod(pod.obj()).key

    @rule(key=consumes(pods))
    def delete_pod(self, key: str) -> None:
        self.ledger.delete_pod(key)

    @rule(key=pods, status=st.sampled_from(list(TaskStatus)), reserved=st.booleans())
    def move(self, key: str, status: TaskStatus, reserved: bool) -> None:
        member = self.ledger.members.get(key)
        if member is not None:
            self.ledger.move(member, status, reserved=reserved)

    @rule(name=group_names)
    def admit(self, name: str) -> None:
        group = self.ledger.groups.get(f"default/{name}")
        if group is not None:
            self.ledger.admit(group)

    @invariant()
    def sums_are_what_they_would_be(self) -> None:
        fresh = Accounts(self.ledger.tree)
        for group in self.ledger.groups.values():
            if group.is_known:
                fresh.move(self.ledger.tree.path(group.queue), Usage(), group.usage)
        for name in self.ledger.tree.nodes:
            assert self.ledger.usage(name) == fresh.usage(name)
            assert self.ledger.share(name) == fresh.share(name)

    @invariant()
    def groups_sum_up_their_pods(self) -> None:
        for group in self.ledger.groups.values():
            members = list(group.members.values())
            assert group.allocated == _sum(one for one in members if one.status.is_allocated)
            assert group.pending == _sum(one for one in members if one.status is TaskStatus.PENDING)
            assert group.reserved == _sum(one for one in members if one.reserved)
            assert group.ready_count == sum(one.status.is_ready for one in members)

    @invariant()
    def every_pod_is_in_one_group_and_leaves_or_does_not(self) -> None:
        in_groups = [m.key for group in self.ledger.groups.values() for m in group.members.values()]
        assert sorted(in_groups) == sorted(self.ledger.members)
        leaving = {k for k, m in self.ledger.members.items() if m.status is TaskStatus.RELEASING}
        assert {member.key for member in self.ledger.leaving()} == leaving

    @invariant()
    def whoever_waits_is_known_to_wait(self) -> None:
        waiting = {
            key
            for key, group in self.ledger.groups.items()
            if group.is_known and (group.is_pending or group.count(TaskStatus.PENDING))
        }
        assert {group.key for group in self.ledger.waiting()} == waiting


def _sum(members: object) -> Resources:
    assert hasattr(members, "__iter__")
    found: list[Member] = list(members)
    return sum((one.request for one in found), NOTHING)


TestBooks = LedgerMachine.TestCase
TestBooks.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
