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
    "a group whose pods are being deleted is Pending again": """
        gangs-022 gangs-030 gangs-032 gangs-038 gangs-044 gangs-047
    """,
    "a cycle keeps free nodes for a gang that starts once pods have left": """
        gangs-043
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
