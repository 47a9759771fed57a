"""The two walks of docs/architecture.md name functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
HOP = re.compile(r"^\| \d+ \| `([\w/]+\.py):([\w.]+)` \|", re.MULTILINE)
HOPS = HOP.findall((ROOT / "docs" / "architecture.md").read_text())


def test_both_walks_are_there() -> None:
    assert len(HOPS) > 20


@pytest.mark.parametrize(("module", "function"), HOPS)
def test_a_hop_is_in_the_code(module: str, function: str) -> None:
    body: list[ast.stmt] = ast.parse((ROOT / "src" / "bayplan" / module).read_text()).body
    for name in function.split("."):
        found = [one for one in body if _name(one) == name]
        assert found, f"{module} has no {name}"
        body = found[0].body  # type: ignore[attr-defined]


def _name(node: ast.stmt) -> str:
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return node.name if isinstance(node, named) else ""
