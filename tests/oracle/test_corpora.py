"""What Kubernetes decided, every case of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.apiserver import compare_with_server
from tests.oracle.compare import Tally, compare
from tests.oracle.corpus import CORPORA, SessionCase, read_any

pytestmark = pytest.mark.whole


SESSIONS = CORPORA / "apiserver.ndjson.gz"
DECISIONS = sorted(path for path in CORPORA.glob("*.ndjson.gz") if path != SESSIONS)


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name)
def test_every_recorded_case_holds(path: Path) -> None:
    tally = Tally()
    for case in read_any(path):
        assert not isinstance(case, SessionCase)
        compare(case, tally)
    assert tally.differences == []
    assert tally.asked > 0


async def test_every_recorded_request_is_answered_as_by_kube_apiserver() -> None:
    sessions = [case for case in read_any(SESSIONS) if isinstance(case, SessionCase)]
    comparison = await compare_with_server(sessions)
    assert [str(one) for one in comparison.judged if one.mark in comparison.marks] == []
    assert len(comparison.judged) == sum(
        step.expect is not None for session in sessions for step in session.steps
    )
