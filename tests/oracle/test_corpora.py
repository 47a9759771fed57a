"""kube-scheduler's recorded decisions, every one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.compare import Tally, compare
from tests.oracle.corpus import CORPORA, read


@pytest.mark.parametrize("path", sorted(CORPORA.glob("*.ndjson.gz")), ids=lambda path: path.name)
def test_every_decision_equals_kube_schedulers(path: Path) -> None:
    tally = Tally()
    for case in read(path):
        compare(case, tally)
    assert tally.differences == []
    assert tally.verdicts.asked > 0
