"""Whatever is wrong with a command line is said in one line that tells what to do, without a trace.

Every command is asked, also those that are still to come: what they take is read off themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cyclopts import App

from bayplan.cli.main import COMMANDS, INTERNAL, build_app, run
from bayplan.cli.options.server import kubeconfig_place

pytestmark = pytest.mark.whole


Words = tuple[str, ...]


def commands(app: App, words: Words = ()) -> Iterator[Words]:
    """All commands and their subcommands."""
    for name in app:
        if not name.startswith("-"):
            yield (*words, name)
            yield from commands(app[name], (*words, name))


ALL = list(commands(build_app()))


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line with which a command line is refused."""
    assert run(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    "words", [("manifests",), ("completion", "bash"), ("--help",)], ids=" ".join
)
def test_a_full_disk_is_said_in_a_line(words: Words) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bayplan", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 74
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"


def test_a_pipe_is_no_place_for_a_kubeconfig(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "a device or a pipe" in refused(capsys, "apiserver", "--kubeconfig", str(pipe))
    assert pipe.is_fifo()


def test_all_commands_are_asked() -> None:
    assert {words[0] for words in ALL} == {*COMMANDS, *INTERNAL}


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_explains_itself(words: Words, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"Usage: bayplan {' '.join(words)}")
    assert captured.err == ""


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_an_unknown_option_is_named(words: Words, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, *words, "--no-such-option")
    assert "--no-such-option" in line or "is missing" in line
    assert f"`bayplan {' '.join(words)} --help`" in line


def test_what_was_not_given_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "up").startswith(
        "error: --filename is missing. See `bayplan up --help`."
    )
    assert refused(capsys, "completion").startswith("error: SHELL is missing.")
    assert "-f requires an argument" in refused(capsys, "up", "-f")


def test_a_slip_of_the_pen_is_told_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert 'Did you mean "explain"?' in refused(capsys, "explian")
    assert "Did you mean --all-pending?" in refused(capsys, "explain", "--all-pendng")


@pytest.mark.parametrize(
    "words",
    [
        ("apiserver", "--data", "{}/x.db"),
        ("cloud", "list", "--cloud", "{}"),
        ("explain", "shop/a", "-f", "{}"),
        ("explain", "-f", "examples/cluster", "--pod", "{}"),
        ("node-agent", "--limits", "--all-nodes", "--limits-file", "{}"),
        ("plan", "-f", "{}"),
        ("plan", "-f", "examples/cluster", "--groups", "{}"),
        ("queues", "-f", "{}"),
        ("scheduler", "--config", "{}"),
        ("scheduler", "--kubeconfig", "{}"),
        ("up", "-f", "{}"),
        ("volumes", "-f", "{}"),
        ("webhook", "--tls-cert-file", "{}", "--tls-private-key-file", "{}"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_file_that_is_not_there_is_named(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = "/no-such-folder/no-such-file"
    assert missing in refused(capsys, *(word.format(missing) for word in words))


def test_folders_made_for_a_kubeconfig_go_with_it_and_no_others(tmp_path: Path) -> None:
    with kubeconfig_place(tmp_path / "new" / "deep" / "kubeconfig") as path:
        assert path.parent.is_dir()
        path.write_text("")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    with kubeconfig_place(tmp_path / "there" / "new" / "kubeconfig") as path:
        (path.parent / "mine").write_text("")
    assert [one.name for one in (tmp_path / "there" / "new").iterdir()] == ["mine"]
    with kubeconfig_place(tmp_path / "there" / "kubeconfig"):
        pass
    assert (tmp_path / "there").is_dir()
