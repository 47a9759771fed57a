"""Where Volcano's decisions show a defect, ours differ on purpose; and by Volcano's rules they do
not, so that the difference is that rule and nothing else.
"""

from __future__ import annotations

import msgspec
import pytest

from bayplan.queues import TaskStatus
from bayplan.queues.rules import OURS
from tests.oracle.corpus import CORPORA, QueueCase, read_any
from tests.oracle.queues import Run, answers

pytestmark = pytest.mark.whole


MARKED = [
    case
    for case in read_any(CORPORA / "queues.ndjson.gz")
    if isinstance(case, QueueCase) and case.quirk
]
BROKEN = "hierarchy-broken"


def _showing(defect: str) -> list[QueueCase]:
    return [case for case in MARKED if defect in case.quirk]


@pytest.mark.parametrize("case", MARKED, ids=lambda case: case.name)
def test_by_volcanos_rules_its_defects_are_ours(case: QueueCase) -> None:
    if BROKEN not in case.quirk:
        assert [answer for answer in answers(case) if not answer.agrees] == []


@pytest.mark.parametrize("case", MARKED, ids=lambda case: case.name)
def test_by_our_rules_no_limit_is_passed_and_no_gang_is_split(case: QueueCase) -> None:
    run = Run(case, OURS)
    opened = Run(msgspec.structs.replace(case, actions=[]), OURS).ledger
    for name, node in run.ledger.tree.nodes.items():
        held, was = run.ledger.usage(name).held, opened.usage(name).held
        assert not held.over(node.quota.real_capability.most(was), held.nonzero), name
    for group in run.ledger.groups.values():
        new = [one for one in group.members.values() if one.status is TaskStatus.BINDING]
        assert not new or group.is_ready
        if set(run.session.plan.ungated).intersection(group.members):
            assert group.has_quota_to_start


@pytest.mark.parametrize("case", _showing(BROKEN), ids=lambda case: case.name)
def test_one_bad_queue_stops_nobody_else(case: QueueCase) -> None:
    run = Run(case, OURS)
    refusing = {name for name in run.ledger.tree.nodes if run.ledger.tree.refusal(name)}
    taken = {run.ledger.groups[key].queue for key in run.session.plan.admitted}
    waiting = {group.queue for group in run.ledger.groups.values() if group.is_pending}
    assert taken or not waiting - refusing
    assert not taken & refusing


@pytest.mark.parametrize("case", _showing("closed"), ids=lambda case: case.name)
def test_nothing_goes_into_a_queue_that_is_not_open(case: QueueCase) -> None:
    run = Run(case, OURS)
    plan, ledger = run.session.plan, run.ledger
    groups = {*plan.admitted, *(ledger.members[one.pod].group for one in plan.placed)}
    assert all(ledger.tree.is_open(ledger.groups[key].queue) for key in groups)


@pytest.mark.parametrize("case", _showing("zero-minmember"), ids=lambda case: case.name)
def test_a_group_whose_pods_wait_is_not_completed(case: QueueCase) -> None:
    run = Run(case, OURS)
    for key, group in run.ledger.groups.items():
        phase = run.group(key)["phase"]
        assert phase != "Completed" or not group.count(TaskStatus.PENDING, TaskStatus.BINDING)


@pytest.mark.parametrize("case", _showing("needless-eviction"), ids=lambda case: case.name)
def test_nobody_leaves_for_a_pod_that_a_node_has_room_for(case: QueueCase) -> None:
    theirs = len(Run(case).session.plan.evicted)
    assert len(Run(case, OURS).session.plan.evicted) <= theirs
