"""The table and the drawing of the packages agree with the imports and with import-linter."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bayplan"
ROW = re.compile(r"^\| \[`(\w+)`\]\([^)]*\) \| .* \| ([^|]*) \|$", re.MULTILINE)
DRAWN = re.compile(r"^ \d  ([\w ]+)$", re.MULTILINE)
ALL = {"everything above", "everything"}


@cache
def packages() -> set[str]:
    return {one.parent.name for one in SOURCE.glob("*/__init__.py")}


def table() -> dict[str, set[str]]:
    """What each package may import besides `base`, in the order of the page."""
    found: dict[str, set[str]] = {}
    for package, allowed in ROW.findall((ROOT / "docs" / "architecture.md").read_text()):
        named = set(re.split(", ", allowed))
        found[package] = set(found) if named & ALL else named - {"nothing of ours", "base"}
    return found


def contracts() -> list[dict[str, list[str]]]:
    """import-linter's contracts, in the order of their file."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    found: list[dict[str, list[str]]] = settings["contracts"]
    return found


def layers() -> list[set[str]]:
    """import-linter's layers, highest first."""
    first = contracts()[0]
    return [{one.strip(" ()") for one in layer.split("|")} for layer in first["layers"]]


def has_cycle(graph: grimp.ImportGraph, package: str) -> bool:
    """Say whether children of the package, or of one below it, import each other."""
    below = {package} | graph.find_descendants(package)
    return any(graph.nominate_cycle_breakers(one) for one in below if graph.find_children(one))


@cache
def imported() -> dict[str, set[str]]:
    """What each package really imports of the others; all may import `base`."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in packages():
        for module in (SOURCE / package).rglob("*.py"):
            found[package] |= set(_imports(module)) - {package, "base"}
    return found


def _imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        for name in names:
            top, _, rest = name.partition(".")
            if top == "bayplan" and rest.split(".")[0] in packages():
                yield rest.split(".")[0]


def test_every_package_has_its_row_and_its_layer() -> None:
    assert set(table()) == packages()
    assert set().union(*layers()) == packages()


def test_the_drawing_has_the_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert [set(line.split()) for line in DRAWN.findall(page)] == layers()


def test_no_package_imports_what_its_row_does_not_name_nor_names_what_it_does_not_import() -> None:
    allowed, real = table(), imported()
    assert not {
        package: real[package] - allowed[package]
        for package in allowed
        if real[package] - allowed[package]
    }
    named = {package: said for package, said in allowed.items() if package not in {"lab", "cli"}}
    assert not {
        package: said - real[package] for package, said in named.items() if said - real[package]
    }


def test_what_a_row_allows_stands_on_a_lower_layer() -> None:
    height = {package: -at for at, layer in enumerate(layers()) for package in layer}
    for package, allowed in table().items():
        assert not [one for one in allowed if height[one] > height[package]], package


def test_packages_that_may_have_cycles_between_their_parts_still_have_them() -> None:
    """What was put in order is taken off the list, and stays in order."""
    excepted = {name for one in contracts() for name in one.get("skip_descendants", ())}
    graph = grimp.build_graph("bayplan", cache_dir=None)
    assert {name for name in excepted if has_cycle(graph, name)} == excepted
