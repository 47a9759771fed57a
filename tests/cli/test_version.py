"""`bayplan version`: what it prints, and where the commit comes from."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest
import yaml

import bayplan
from bayplan.cli import version
from bayplan.cli.main import run
from bayplan.cli.version import COMMIT, DATE, Commit, find_commit

Captured = pytest.CaptureFixture[str]
KNOWN = Commit("0123abcd", "2026-01-02T03:04:05+00:00")
FIELDS = {
    "version": bayplan.__version__,
    "python": f"{platform.python_implementation()} {platform.python_version()}",
    "platform": f"{platform.system()} {platform.machine()}".lower(),
}


@pytest.fixture
def commit(monkeypatch: pytest.MonkeyPatch) -> Commit:
    monkeypatch.setenv(COMMIT, KNOWN.id)
    monkeypatch.setenv(DATE, KNOWN.date)
    return KNOWN


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMMIT, raising=False)
    monkeypatch.setattr(version, "_installed", lambda: None)


def test_it_prints_a_line_for_each_field(capsys: Captured, commit: Commit) -> None:
    assert run(["version"]) == 0
    fields = {**FIELDS, "commit": commit.id, "date": commit.date}
    assert capsys.readouterr().out == "".join(f"{key}: {fields[key]}\n" for key in fields)


def test_json_and_yaml_have_the_same_fields(capsys: Captured, commit: Commit) -> None:
    fields = {**FIELDS, "commit": commit.id, "date": commit.date}
    assert run(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == fields
    assert run(["version", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == fields


@pytest.mark.usefixtures("unknown")
def test_an_unknown_commit_is_unknown(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert find_commit(tmp_path / "src" / "bayplan") == Commit()
    monkeypatch.setattr(version, "find_commit", Commit)
    assert run(["version"]) == 0
    assert capsys.readouterr().out.endswith("commit: unknown\ndate: unknown\n")
    assert run(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**FIELDS, "commit": None, "date": None}


@pytest.mark.usefixtures("unknown")
def test_a_clone_has_its_last_commit(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "bayplan"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    found = find_commit(folder)
    assert len(found.id) == 40
    assert "T" in found.date
    assert find_commit(folder / "within") == Commit()


@pytest.mark.usefixtures("unknown")
def test_a_clone_without_git_or_commits_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "src" / "bayplan"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert find_commit(folder) == Commit()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_commit(folder) == Commit()


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ('{"url": "u", "vcs_info": {"vcs": "git", "commit_id": "0123abcd"}}', "0123abcd"),
        ('{"url": "u", "dir_info": {"editable": true}}', ""),
        ("not JSON", ""),
        ("[]", ""),
        (None, ""),
    ],
)
def test_pip_s_record_of_a_repository_has_the_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: str | None, found: str
) -> None:
    monkeypatch.delenv(COMMIT, raising=False)
    monkeypatch.setattr(version, "distribution", lambda _: _Distribution(recorded))
    assert find_commit(tmp_path / "src" / "bayplan") == Commit(found)


class _Distribution:
    def __init__(self, recorded: str | None) -> None:
        self._recorded = recorded

    def read_text(self, _: str) -> str | None:
        return self._recorded
