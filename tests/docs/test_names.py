"""Names that people write into objects, and gates that they switch, stand in the reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bayplan.autoscaler.clusterstate import taints
from bayplan.kube import volcano
from bayplan.kube.gates import DEFAULTS

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[2]
_OURS = re.compile(
    r"\"((?:bayplan\.io|(?:capacity\.)?cluster-autoscaler\.kubernetes\.io|volcano\.sh)/[a-z-]+)\""
)


def _page(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text()


def test_every_annotation_label_and_taint_is_explained() -> None:
    page, named = _page("names"), set()
    for module in (ROOT / "src" / "bayplan").rglob("*.py"):
        if "ui" not in module.parts:
            named |= set(_OURS.findall(module.read_text()))
    named |= {volcano.QUEUE_SCHEDULING_GATE, volcano.GROUP_MIN_MEMBER}
    named |= {*volcano.GROUP_NAME_ANNOTATIONS, *volcano.QUEUE_NAME_ANNOTATIONS}
    named |= {taints.TO_BE_DELETED, taints.DELETION_CANDIDATE}
    assert len(named) > 10
    assert not {name for name in named if f"`{name}`" not in page}


def test_every_gate_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (on|off) \|", _page("feature-gates"), re.MULTILINE)
    assert dict(rows) == {name: "on" if on else "off" for name, on in DEFAULTS.items()}
    readme = re.findall(
        r"^\| `(\w+)` \| (on|off) \|", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert dict(readme) == dict(rows)
