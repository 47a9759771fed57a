"""What the style checks read: class names, module names and texts of the product's sources."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parents[2] / "src" / "bayplan"

AVOIDED = re.compile(
    r"\b(nobody|whoever|somebody|anybody|says|(?:is|are|be|was|were) told|by (?:its|their) word"
    r"|in any case|heeds?|quay|let in|lets? through|buy|buys|bought|gives? back|given back"
    r"|likeness|house)\b",
    re.IGNORECASE,
)
"""Words of our own where the field has others; docs/glossary.md has the field's."""


class Text(NamedTuple):
    """A string literal or docstring, and where it stands."""

    module: str
    line: int
    text: str


@cache
def modules() -> dict[str, ast.Module]:
    """Return the parsed sources by dotted name below `bayplan`, without generated ones."""
    paths = [path for path in SOURCES.rglob("*.py") if "_pb2" not in path.name]
    return {_name(path): ast.parse(path.read_text()) for path in sorted(paths)}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def texts() -> Iterator[Text]:
    """Yield every string literal and docstring."""
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield Text(module, node.lineno, node.value)


def public_classes() -> dict[str, list[str]]:
    """Return the modules that define each public class name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return found


def package(module: str) -> str:
    """Return the top-level package that a module belongs to."""
    return module.split(".", 1)[0]
