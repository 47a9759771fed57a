"""Whatever our daemons say of a pod, a node, a group or a queue stands in troubleshooting."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bayplan.autoscaler.scaledown.reasons import BlockingReason, UnremovableReason
from bayplan.observe import limitwatch
from bayplan.queues.problems import Why

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bayplan"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SAYING = [
    *sorted((SOURCE / "fit" / "filters").glob("*.py")),
    SOURCE / "fit" / "needs" / "devices.py",
    SOURCE / "fit" / "preemption" / "search.py",
    SOURCE / "queues" / "saying.py",
    SOURCE / "queues" / "room.py",
    SOURCE / "autoscaler" / "scaleup" / "bounds.py",
    SOURCE / "autoscaler" / "scaleup" / "why.py",
    SOURCE / "autoscaler" / "scaleup" / "decide.py",
]
NOT_SAID = {
    "the node object and its CSINode",
    "also what is on the node",
    "also what is on other nodes",
    "affinity counts by domain",
    "the node passes every spread constraint",
    "spread by node",
    "a spread constraint counts by domain",
    "pods by node are counted by slot",
}
"""Texts of errors in the code itself, and names of what an answer rests on."""
TELLING = ("scheduler", "autoscaler", "node", "observe")


@pytest.mark.parametrize("module", SAYING, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_reason_is_explained(module: Path) -> None:
    said = {text for text in _texts(module) if text not in NOT_SAID}
    assert not {text for text in said if text.strip() not in PAGE}


def test_every_reason_that_has_a_name_is_explained() -> None:
    names = {one.value for kind in (UnremovableReason, BlockingReason, Why) for one in kind}
    assert not {name for name in names if f"`{name}`" not in PAGE}


def test_every_event_is_explained() -> None:
    names = {limitwatch.UNREADABLE, limitwatch.OVER}
    for room in TELLING:
        for module in (SOURCE / room).rglob("*.py"):
            names |= set(_events(module))
    assert len(names) > 20
    assert not {name for name in names if f"`{name}`" not in PAGE}


def _texts(module: Path) -> Iterator[str]:
    """Every text of several words that is no docstring; of one with gaps, its parts of two words
    or more.
    """
    tree = ast.parse(module.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            parts = re.split(r"\{\}", node.value) if isinstance(node.value, str) else []
            yield from (part for part in parts if len(part.split()) > 1)


def _events(module: Path) -> Iterator[str]:
    """The reasons of events: what stands behind `Normal` or `Warning`."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call):
            texts = [one.value if isinstance(one, ast.Constant) else None for one in node.args]
            for kind, reason in pairwise(texts):
                if kind in {"Normal", "Warning"} and isinstance(reason, str):
                    yield reason
