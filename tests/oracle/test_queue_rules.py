"""The page of queues names, for each habit of Volcano's, a case that shows it.

With our method in its place something else is decided there.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from bayplan.queues.actions import ACTIONS
from bayplan.queues.volcano import cycle, ledger
from tests.oracle.corpus import CORPORA, QueueCase, read_any
from tests.oracle.queues import answers

pytestmark = pytest.mark.whole


PAGE = Path(__file__).parents[2] / "docs" / "queues.md"
_ROW = re.compile(
    r"^\| (?P<habits>`[^|]*`) \|.* \| `(?P<case>dev-[a-z]+(?:-[a-z]+)*-\d+)` \|$", re.MULTILINE
)
_NAME = re.compile(r"`(\w+)\.(\w+)`")
SHOWN = {row["case"]: _NAME.findall(row["habits"]) for row in _ROW.finditer(PAGE.read_text())}
CLASSES = {
    one.__name__: one
    for module in (cycle, ledger)
    for one in vars(module).values()
    if inspect.isclass(one) and one.__name__.startswith("Volcano")
}
PLAIN = ("tree_type", "accounts_type", "group_type")
"""What is in a class of Volcano's and is no habit."""


@cache
def _cases() -> dict[str, QueueCase]:
    read = read_any(CORPORA / "queues.ndjson.gz")
    return {case.name: case for case in read if isinstance(case, QueueCase)}


def _do_as_we_do(monkeypatch: pytest.MonkeyPatch, owner: str, name: str) -> None:
    if owner == "cycle":
        as_ours = {action: ACTIONS[action] for action in ACTIONS if action == name}
        monkeypatch.setattr(cycle, "VOLCANO_ACTIONS", {**cycle.VOLCANO_ACTIONS, **as_ours})
        return
    base = CLASSES[owner].__mro__[1]
    method = inspect.getattr_static(base, name, lambda *_: None)
    monkeypatch.setattr(CLASSES[owner], name, method)


@pytest.mark.parametrize("case", SHOWN)
def test_without_a_habit_its_case_is_decided_otherwise(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(answer.agrees for answer in answers(_cases()[case]))
    for owner, name in SHOWN[case]:
        _do_as_we_do(monkeypatch, owner, name)
    assert not all(answer.agrees for answer in answers(_cases()[case]))


def test_the_page_names_every_habit() -> None:
    text = PAGE.read_text()
    assert len(SHOWN) >= 15
    overridden = {
        f"{owner}.{name}" for owner, one in CLASSES.items() for name in vars(one)
        if not name.startswith("_") and name not in PLAIN
    }  # fmt: skip
    assert {name for name in overridden if f"`{name}`" not in text} == set()
