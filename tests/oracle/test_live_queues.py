"""The live scheduler comes to what a cycle by our rules decides, in the recorded queue cases.

`DIFFERENT` has the cases in which it does not, by why; docs/queues.md tells of them. A sample of
the cases is played, and all of them with `--long`.
"""

from __future__ import annotations

import pytest

from bayplan.lab import run_virtually
from tests.oracle.corpus import CORPORA, QueueCase, read_any
from tests.oracle.live_queues import cycle_outcome, live_outcome, recorded_outcome

pytestmark = pytest.mark.whole
EVERY = 16
DIFFERENT = {
    "room is made for each group as it is refused": """
        flat-capacity-005 flat-proportion-006 flat-proportion-008 flat-proportion-025
        hierarchy-003 hierarchy-014 hierarchy-015 hierarchy-049 hierarchy-054
        gangs-002 gangs-017 gates-022 closed-009
        reclaim-013 reclaim-024 reclaim-028 reclaim-029 reclaim-032 reclaim-043 reclaim-044
        preempt-002 preempt-003 preempt-024
    """,
    "a gate goes once those who leave are gone": """
        gates-004 gates-032 gates-033 gates-037 gates-043
    """,
    "a group whose pods are being deleted is Pending again": """
        hierarchy-056 gangs-022 gangs-030 gangs-032 gangs-038 gangs-044 gangs-047
    """,
    "pods are tried more than once": """
        gangs-043 gangs-052 reclaim-017
    """,
}
KNOWN = {f"dev-{name}": why for why, names in DIFFERENT.items() for name in names.split()}
AS_RECORDED = 278
"""Cases in which the live scheduler does all that Volcano did, and no more."""


def _cases() -> list[QueueCase]:
    read = read_any(CORPORA / "queues.ndjson.gz")
    return [case for case in read if isinstance(case, QueueCase)]


def test_the_scheduler_comes_to_what_a_cycle_decides(long: bool) -> None:
    cases = _cases()
    found: dict[str, list[str]] = {}
    as_recorded = 0
    for case in cases if long else cases[::EVERY]:
        live = run_virtually(live_outcome(case))
        if differences := list(live.differences(cycle_outcome(case))):
            found[case.name] = differences
        as_recorded += not list(live.differences(recorded_outcome(case, live)))
    assert {name: said for name, said in found.items() if name not in KNOWN} == {}
    if long:
        assert found.keys() == KNOWN.keys()
        assert as_recorded == AS_RECORDED


def test_every_known_difference_is_of_a_case() -> None:
    assert KNOWN.keys() <= {case.name for case in _cases()}
