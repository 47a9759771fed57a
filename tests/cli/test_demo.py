"""`bayplan demo` as people have it: on a terminal, in a log, kept up, and interrupted."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest
from rich.console import Console

from bayplan.cli import demo
from bayplan.cli.main import run
from bayplan.cli.simulated.stories import StoryResult, all_gates, typed
from bayplan.embedded.simulation.clusterfile import read_cluster
from bayplan.lab.stories import BY_GATE, STORIES, StoryCheck
from bayplan.lab.stories.cluster import ClusterFigures
from tests.kubectl import KUBECTL, needs_kubectl
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]


@dataclass
class TerminalCommand:
    """A command on a terminal of its own."""

    process: subprocess.Popen[bytes]
    terminal: int
    seen: str = ""

    def until(self, text: str) -> str:
        """Read until the text was written."""
        while text not in self.seen:
            assert self._read(), f"ended without {text!r}: {self.seen[-2000:]}"
        return self.seen

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait(timeout=PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.terminal], [], [], PATIENCE)
        assert ready, f"says nothing more: {self.seen[-2000:]}"
        with suppress(OSError):  # the other end has gone
            piece = os.read(self.terminal, 65536)
            self.seen += piece.decode(errors="replace")
            return bool(piece)
        return False


@contextmanager
def on_terminal(
    *arguments: str, folder: Path, size: tuple[int, int] = (80, 24)
) -> Iterator[TerminalCommand]:
    """The demo on a terminal of so many columns and lines; what it makes goes into the folder."""
    ours, theirs = pty.openpty()
    columns, lines = size
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    names = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "bayplan", "demo", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**names, "TERM": "xterm", "TMPDIR": str(folder)},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield TerminalCommand(process, ours)
    finally:
        process.kill()
        process.wait(timeout=PATIENCE)
        os.close(ours)


def plain(text: str) -> list[str]:
    """Lines without what steers a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").splitlines()


def test_a_log_has_the_words_the_changes_the_table_and_the_promises(capsys: Captured) -> None:
    assert run(["demo", "--story", "3"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "Story 3 of 8: From zero" in lines
    assert "  1:20  with Bayplan: 3 ready; 20 running, 0 waiting" in lines
    assert "nodes added               3             3" in lines
    assert "✓  3 nodes added, which is ⌈20/8⌉, known from the template alone" in lines
    assert "  bayplan demo --story 3 --keep" in lines
    assert "\x1b" not in out
    assert lines[-1].startswith("1 story in ")


def test_a_story_that_does_not_end_as_promised_is_told_and_ends_with_1(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(STORIES[2], check=lambda on, off: (StoryCheck("pigs fly", holds=False),))
    monkeypatch.setattr(demo, "STORIES", (broken,))
    assert run(["demo", "--plain"]) == 1
    out = capsys.readouterr().out
    assert "✗  pigs fly" in out
    assert "story 3, From zero, did not have the expected result: pigs fly" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--story", "9"], "error: --story 9: must be from 1 to 8"),
        (["--story", "0"], "error: --story 0: must be from 1 to 8"),
        (["--keep"], "error: --keep: needs --story N, the story whose cluster is kept"),
        (
            ["--story", "1", "--story", "4", "--keep"],
            "error: --keep: keeps the cluster of one story, but --story is given for 1, 4",
        ),
    ],
)
def test_a_wrong_question_is_one_clear_line(
    arguments: list[str], said: str, capsys: Captured
) -> None:
    assert run(["demo", *arguments]) == 2
    assert capsys.readouterr().err.splitlines() == [said]


@pytest.mark.parametrize("size", [(80, 24), (160, 50), (30, 8)])
def test_on_a_terminal_both_takes_are_seen_and_no_line_is_too_long(
    size: tuple[int, int], tmp_path: Path
) -> None:
    with on_terminal("--story", "3", folder=tmp_path, size=size) as it:
        assert it.end() == 0
    lines = plain(it.seen)
    assert any(line.startswith("at 1:20") for line in lines)
    assert "all as expected." in "".join(lines)
    commands = {f"  {one}" for one in (*STORIES[2].commands, "bayplan demo --story 3 --keep")}
    result = [line for line in lines if line.rstrip() not in commands]  # those are to be copied
    assert max(map(len, result)) <= size[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("story", ["1", "7"])
def test_it_can_be_ended_at_any_time_and_leaves_nothing(
    number: signal.Signals, story: str, tmp_path: Path
) -> None:
    with on_terminal("--story", story, folder=tmp_path) as it:
        it.until("starting the clusters" if story == "7" else "at 0:")
        it.process.send_signal(number)
        assert it.end() == 130, it.seen
    assert "Traceback" not in it.seen
    assert not list(tmp_path.iterdir())


def test_commands_are_shown_as_they_can_be_typed(tmp_path: Path) -> None:
    ours, beside = tmp_path / "bayplan", tmp_path / "beside"
    ours.touch(mode=0o755)

    def shown(line: str, called: str, path: str = "/nowhere") -> str:
        return typed(line, called, path, beside)

    assert shown("bayplan volumes", str(ours)) == f"{ours} volumes"
    assert shown("bayplan volumes", ".venv/bin/bayplan") == ".venv/bin/bayplan volumes"
    assert shown("bayplan volumes", f"{beside}/bin/bayplan") == "bin/bayplan volumes"
    assert shown("bayplan volumes", str(ours), str(tmp_path)) == "bayplan volumes"
    assert shown("kubectl get pods", str(ours)) == "kubectl get pods"


def test_what_a_script_started_deaf_to_ctrl_c_can_be_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bayplan", "demo", "--story", "7"]
    names = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    with subprocess.Popen(deaf, stdout=subprocess.PIPE, env=names) as process:
        assert process.stdout is not None
        assert any(b"With RuntimeClass" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(timeout=PATIENCE) == 130
    assert not list(tmp_path.iterdir())


def test_what_comes_later_in_a_story_comes_once_its_first_pods_run() -> None:
    """Story 1 is kept up with full nodes, when twenty pods more come."""
    kept = demo.sooner(read_cluster(STORIES[0].cluster))
    assert [one.at for one in kept.workloads] == [0.0, demo.SOON]
    on = STORIES[0].begin(on=True)
    with on:
        while (frame := on.step()) is not None and on.figures.running < 16:
            pass
    assert frame is not None
    minutes, seconds = frame.time.split(":")
    assert int(minutes) * 60 + int(seconds) < demo.SOON


@needs_kubectl
def test_a_cluster_that_is_kept_answers_kubectl_until_it_is_ended(tmp_path: Path) -> None:
    with on_terminal("--story", "5", "--keep", folder=tmp_path) as it:
        it.until("In another terminal, try:")
        (kubeconfig,) = re.findall(r"export KUBECONFIG=(\S+)", it.seen)
        with _watched_gates(kubeconfig) as seen:
            gated = next(pods for pods in seen if len(pods) == 12)
            assert all(gated.values())
            change = '{"spec":{"capability":{"cpu":"36"}}}'
            _kubectl(kubeconfig, "patch", "queue", "research", "--type", "merge", "-p", change)
            assert any(not any(pods.values()) for pods in seen)
        it.process.send_signal(signal.SIGINT)
        assert it.end() == 0
    assert not list(tmp_path.iterdir())


def _kubectl(kubeconfig: str, *arguments: str) -> str:
    command = [KUBECTL, "--kubeconfig", kubeconfig, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout


@contextmanager
def _watched_gates(kubeconfig: str) -> Iterator[Iterator[dict[str, str]]]:
    """The scheduling gates of all pods, after each change of one."""
    form = 'jsonpath={.metadata.name} {.spec.schedulingGates}{"\\n"}'
    command = [KUBECTL, "--kubeconfig", kubeconfig, "get", "pods", "--watch", "-o", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield _latest(process.stdout)
        finally:
            process.kill()


def _latest(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    gates: dict[str, str] = {}
    for line in lines:
        name, _, found = line.strip().partition(" ")
        gates[name] = found
        yield dict(gates)


def test_gates_are_whole_words_where_a_terminal_is_narrow() -> None:
    both = ClusterFigures(added=3, running=36, waited_seconds=1980.0)
    result = [StoryResult(story, both, both) for story in BY_GATE.values()]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(*all_gates(result))
    shown = console.export_text().split()
    assert set(BY_GATE) <= set(shown)
