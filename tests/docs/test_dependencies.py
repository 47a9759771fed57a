"""Every dependency has its reason in docs/dependencies.md."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dependencies.md").read_text().lower()
FIRST_CELLS = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
REASONED = {name.strip() for cell in FIRST_CELLS for name in cell.split(",")}


def _names(requirements: list[str | dict[str, str]]) -> set[str]:
    texts = [one for one in requirements if isinstance(one, str)]
    return {re.split(r"[<>=;\[]", text)[0].lower() for text in texts}


def test_every_python_package_has_its_row() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = _names(settings["project"]["dependencies"])
    for group in (settings["project"]["optional-dependencies"], settings["dependency-groups"]):
        named |= {name for requirements in group.values() for name in _names(requirements)}
    assert len(named) > 20
    assert named - REASONED == set()


def test_every_package_of_the_web_page_has_its_row() -> None:
    package = json.loads((ROOT / "web" / "package.json").read_text())
    named = {*package.get("dependencies", {}), *package.get("devDependencies", {})}
    assert named
    assert named - REASONED == set()
