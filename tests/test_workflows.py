"""Workflows, hooks and forms can be read, and run what there is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(one for one in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if one.stem != "config")
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def made(text: str) -> Iterator[str]:
    """The targets that a command line makes."""
    for words in re.findall(r"\bmake ([^|;&\n]+)", text):
        yield from (word for word in words.split() if re.fullmatch(r"[a-z]+", word))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_makes_targets_that_there_are_and_may_only_read(path: Path) -> None:
    workflow = read(path)
    runs = [
        step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step
    ]
    targets = {target for run in runs for target in made(run)}
    assert targets
    assert targets <= TARGETS
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_the_workflows_make_what_contributors_are_asked_to_make() -> None:
    checks = (GITHUB / "workflows" / "checks.yml").read_text()
    assert {"lint", "test", "unit"} <= set(made(checks))
    assert {"wheel", "image"} <= set(made((GITHUB / "workflows" / "release.yml").read_text()))
    asked = {"lint", "test", "unit"}
    assert all(f"make {target}" in (ROOT / "CONTRIBUTING.md").read_text() for target in asked)


def test_the_oldest_python_that_is_tested_is_the_oldest_that_is_supported() -> None:
    jobs = read(GITHUB / "workflows" / "checks.yml")["jobs"]
    for job in (jobs["unit"], jobs["test"]):
        versions = job["strategy"]["matrix"]["python"]
        assert f">={versions[0]}" == PROJECT["requires-python"]
    named = [one for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert {one.rpartition(" ")[2] for one in named} <= set(versions)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_a_name_a_description_and_fields_of_their_own_ids(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0


def test_dependabot_looks_into_folders_that_there_are() -> None:
    updates = read(GITHUB / "dependabot.yml")["updates"]
    assert all((ROOT / one["directory"].strip("/")).is_dir() for one in updates)


def test_hooks_run_what_is_locked_or_made() -> None:
    locked = (ROOT / "requirements" / "dev.lock").read_text()
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    for hook in repository["hooks"]:
        program, word, *_ = hook["entry"].split()
        if program == "make":
            assert word in TARGETS
        else:
            assert f"\n{program.removeprefix('.venv/bin/')}==" in locked


def test_every_address_of_the_project_is_in_one_repository() -> None:
    home = PROJECT["urls"]["Homepage"]
    contact = read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")["contact_links"]
    for address in [*PROJECT["urls"].values(), *(one["url"] for one in contact)]:
        assert address == home or address.startswith(f"{home}/")
