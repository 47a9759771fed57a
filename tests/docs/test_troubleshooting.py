"""Whatever our daemons say of a pod, a node, a group or a queue stands in troubleshooting."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bayplan.autoscaler.scaledown.reasons import BlockingReason, UnremovableReason
from bayplan.cli import errors
from bayplan.images.manager.image_request import ImageEventReason
from bayplan.observe import limitwatch
from bayplan.queues.problems import WaitCode

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bayplan"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
ADMISSION = ("app", "pods", "queues", "review", "rules")
IMAGES = (
    "handlers",
    *(f"cri/{name}" for name in ("image_service", "server")),
    *(f"manager/{name}" for name in ("errors", "image_request", "manager", "pulls")),
    *(f"pull/{name}" for name in ("contents", "puller")),
)
SAYING = [
    SOURCE / "fit" / "requirements" / "devices.py",
    SOURCE / "fit" / "preemption" / "search.py",
    SOURCE / "queues" / "status.py",
    SOURCE / "queues" / "quota_checks.py",
    SOURCE / "autoscaler" / "estimate" / "limits.py",
    SOURCE / "autoscaler" / "scaleup" / "explanation.py",
    SOURCE / "autoscaler" / "scaleup" / "orchestrator.py",
    *(SOURCE / "admission" / f"{name}.py" for name in ADMISSION),
    *(SOURCE / "images" / f"{name}.py" for name in IMAGES),
]
PLUGINS = [
    module
    for module in sorted((SOURCE / "fit" / "plugins").rglob("*.py"))
    if module.stem != "explanation"
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
    "request failed",
    ": write it as MIN:MAX",
    " but a ",
    " without a request",
    "nested too deeply",
    "the object cannot be read: ",
    ", must be at least 1",
    "not from 0 to 100",
    "must not be negative",
    "must not be 0 where minCandidateNodesAbsolute is",
    "max parallel image pulls is ",
    "serialized image pulls cannot have a limit other than 1",
}
"""Texts of errors in the code itself, names of what an answer rests on, and errors about options
and requests that say themselves what is wrong with them.
"""
_LOGGED = re.compile(r"%s|^grpc\.")
"""Lines of logs, and names of types."""
TELLING = ("scheduler", "autoscaler", "node", "observe", "images", "admission")


@pytest.mark.parametrize("module", SAYING, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_reason_is_explained(module: Path) -> None:
    said = {text for text in _texts(module) if text not in NOT_SAID and not _LOGGED.search(text)}
    assert not {text for text in said if text.strip() not in PAGE}


@pytest.mark.parametrize("module", PLUGINS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_reason_of_a_plugin_is_explained(module: Path) -> None:
    assert not {text for text in _reasons(module) if text.strip() not in PAGE}


def test_plugins_give_reasons() -> None:
    assert sum(len(set(_reasons(module))) for module in PLUGINS) > 20


def test_every_reason_that_has_a_name_is_explained() -> None:
    names = {one.value for kind in (UnremovableReason, BlockingReason, WaitCode) for one in kind}
    assert not {name for name in names if f"`{name}`" not in PAGE}


def test_every_event_is_explained() -> None:
    names = {limitwatch.UNREADABLE, limitwatch.OVER}
    for package in TELLING:
        for module in (SOURCE / package).rglob("*.py"):
            names |= set(_events(module))
    assert len(names) > 20
    assert not {name for name in names if f"`{name}`" not in PAGE}


def test_every_event_of_images_is_explained() -> None:
    assert not {one.value for one in ImageEventReason if f"`{one.value}`" not in PAGE}


def test_every_refusal_of_a_command_that_names_no_flag_is_explained() -> None:
    """One that begins with a flag or a file says itself what to look at."""
    said = {part for module in (SOURCE / "cli").rglob("*.py") for part in _refusals(module)}
    assert len(said) > 10
    assert not {text for text in said if text.strip(" ,;:") not in PAGE}


def test_every_exit_code_is_explained() -> None:
    codes = {one for name, one in vars(errors).items() if name.startswith("EXIT_")}
    page = (ROOT / "docs" / "commands" / "index.md").read_text()
    assert len(codes) > 5
    assert not {code for code in codes if f"| {code} |" not in page}


def _refusals(module: Path) -> Iterator[str]:
    """Of each BadInput that begins with words, those of its parts that are several."""
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="BadInput"), args=[message, *_])):
                parts = message.values if isinstance(message, ast.JoinedStr) else [message]
                words = [str(one.value) for one in parts if isinstance(one, ast.Constant)]
                if isinstance(parts[0], ast.Constant) and not words[0].startswith("--"):
                    yield from (one for one in words if len(one.split()) > 1)


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


def _reasons(module: Path) -> Iterator[str]:
    """The texts of several words in a plugin's constants and refusals."""
    tree = ast.parse(module.read_text())
    said: list[ast.AST] = [one.value for one in tree.body if isinstance(one, ast.Assign)]
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="Refusal"))):
                said.append(node)
    for part in said:
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from (one for one in node.value.split("{}") if len(one.split()) > 1)


def _events(module: Path) -> Iterator[str]:
    """The reasons of events: what stands behind `Normal` or `Warning`."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call):
            texts = [one.value if isinstance(one, ast.Constant) else None for one in node.args]
            for kind, reason in pairwise(texts):
                if kind in {"Normal", "Warning"} and isinstance(reason, str):
                    yield reason
