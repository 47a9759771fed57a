"""The glossary has each word once, in one sentence, and names what exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import bayplan
from bayplan.cli.main import build_app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()
ROWS = re.findall(r"^\| (?!word |---)([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
SOURCE = "".join(path.read_text() for path in Path(bayplan.__path__[0]).rglob("*.py"))


def test_each_word_is_there_once() -> None:
    words = Counter(word.strip() for cell, _ in ROWS for word in cell.split(","))
    assert len(words) > 80
    assert [word for word, count in words.items() if count > 1] == []


def test_each_meaning_is_one_sentence() -> None:
    assert [meaning for _, meaning in ROWS if ". " in meaning or len(meaning) > 220] == []


def test_commands_and_classes_that_are_named_exist() -> None:
    for command in re.findall(r"`bayplan ([a-z-]+)", PAGE):
        assert command in build_app(command), command
    for name in re.findall(r"\(`([A-Z]\w+)`\)", PAGE):
        assert f"class {name}" in SOURCE
