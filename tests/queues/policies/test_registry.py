"""Every policy is registered under its own name, which is what flags and files may say."""

from __future__ import annotations

from typing import get_args

from bayplan.queues.policies import POLICIES, QueuePolicyName
from bayplan.queues.rules import OURS, VOLCANO
from tests.builders import make_pod, make_pod_group, make_queue


def test_policies_are_known_by_their_names() -> None:
    assert get_args(QueuePolicyName) == tuple(POLICIES)
    assert all(one.name == name for name, one in POLICIES.items())


def test_only_volcano_caps_queues_at_what_they_deserve() -> None:
    for rules in (OURS, VOLCANO):
        ledger = rules.ledger(policy="proportion")
        ledger.put_queue(make_queue("q").capability(cpu="4").obj())
        group = make_pod_group("g").queue("q")
        ledger.put_group(group.obj())
        ledger.put_pod(group.member(make_pod("p").cpu("1")).obj())
        limit = ledger.accounts.limit("q")["cpu"]
        assert limit == (1000 if rules is VOLCANO else 4000)
