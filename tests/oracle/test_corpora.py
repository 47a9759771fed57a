"""What Kubernetes decided, every case of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.compare import Tally, compare
from tests.oracle.corpus import CORPORA, read_any


@pytest.mark.parametrize("path", sorted(CORPORA.glob("*.ndjson.gz")), ids=lambda path: path.name)
def test_every_recorded_case_holds(path: Path) -> None:
    tally = Tally()
    for case in read_any(path):
        compare(case, tally)
    assert tally.differences == []
    assert tally.asked > 0
