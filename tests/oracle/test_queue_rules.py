"""The page of queues names, for each rule of Volcano's, a case that shows it: without that rule
something else is decided there.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bayplan.queues import VOLCANO, Rules
from tests.oracle.corpus import CORPORA, QueueCase, read_any
from tests.oracle.queues import answers

pytestmark = pytest.mark.whole


PAGE = Path(__file__).parents[2] / "docs" / "queues.md"
_ROW = re.compile(
    r"^\| `(?P<rule>\w+)`.* \| `(?P<case>dev-[a-z]+(?:-[a-z]+)*-\d+)` \|$", re.MULTILINE
)
SHOWN = {row["rule"]: row["case"] for row in _ROW.finditer(PAGE.read_text())}


@cache
def _cases() -> dict[str, QueueCase]:
    read = read_any(CORPORA / "queues.ndjson.gz")
    return {case.name: case for case in read if isinstance(case, QueueCase)}


@pytest.mark.parametrize("rule", SHOWN)
def test_without_a_rule_its_case_is_decided_otherwise(rule: str) -> None:
    case = _cases()[SHOWN[rule]]
    assert all(answer.agrees for answer in answers(case))
    without = replace(VOLCANO, **{rule: False})
    assert not all(answer.agrees for answer in answers(case, without))


def test_the_page_names_every_rule() -> None:
    text = PAGE.read_text()
    assert len(SHOWN) >= 15
    assert all(f"`{name}`" in text for name in Rules.__dataclass_fields__)
