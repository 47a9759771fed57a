"""What people see: rows that say enough, lines to be copied, and how far a command has come."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bayplan.cli.main import run
from tests.cli.clusters import EXAMPLE, Wire, dump, node, pod
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]


def tainted(name: str, key: str) -> Wire:
    made = node(name)
    made["spec"] = {"taints": [{"key": key, "value": "yes", "effect": "NoSchedule"}]}
    return made


def on_terminal(*arguments: str, columns: int, output: Path | None = None) -> str:
    """What a command writes to a terminal; its output goes there too, unless to a file."""
    ours, theirs = pty.openpty()
    with output.open("wb") if output else os.fdopen(os.dup(theirs), "wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "bayplan", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=theirs,
            env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm"},
        )
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # the other end has gone
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    process.wait(timeout=PATIENCE)
    return seen.decode()


def test_grouped_rows_keep_taints_and_what_is_short(tmp_path: Path, capsys: Captured) -> None:
    nodes = [node(f"small-{i:02d}", cpu="1") for i in range(20)]
    nodes += [node(f"other-{i}", cpu="1500m") for i in range(3)]
    nodes += [tainted(f"gpu-{i}", "gpu") for i in range(2)] + [tainted("db-0", "db")]
    assert run(["explain", "-f", dump(tmp_path, *nodes, pod(cpu="2")), "p", "--no-fixes"]) == 1
    lines = capsys.readouterr().out.splitlines()
    (short,) = (line for line in lines if line.startswith("  23 nodes, such as "))
    assert "Insufficient cpu: wants 2 CPUs, 1 free (20); wants 2 CPUs, 1.5 free (3)" in short
    (taints,) = (line for line in lines if line.startswith("  3 nodes, such as "))
    assert "taint gpu=yes:NoSchedule (2); taint db=yes:NoSchedule (1)" in taints


def test_a_pipe_gets_a_line_for_each_row_and_command(capsys: Captured) -> None:
    assert run(["explain", "-f", str(EXAMPLE), "shop/ledger-15"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(not line.endswith(" ") for line in lines)
    (commands,) = ([line for line in lines if "kubectl -n shop patch" in line],)
    assert all(line.startswith("     kubectl ") for line in commands)
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("columns", [80, 160])
def test_a_command_can_be_copied_whole_from_a_terminal(columns: int) -> None:
    seen = on_terminal("explain", "-f", str(EXAMPLE), "shop/ledger-15", columns=columns)
    lines = [line.rstrip("\r") for line in seen.split("\n")]
    (whole,) = (line for line in lines if "patch statefulset ledger" in line)
    assert whole.rstrip("\x1b[0m").endswith("delete pod ledger-15")
    texts = [line for line in lines if "kubectl" not in line and "\x1b" not in line]
    assert max(map(len, texts)) <= columns


def test_a_bar_says_how_far_reading_and_explaining_are(tmp_path: Path) -> None:
    pods = [pod(f"p{i}", cpu="8") for i in range(5000)]
    where = dump(tmp_path, node(), *pods)
    asked = ("explain", "-f", where, "--all-pending", "--no-fixes")
    output = tmp_path / "output"
    seen = on_terminal(*asked, columns=100, output=output)
    piped = output.read_text()
    assert "%" in seen
    assert "Explaining pod" in seen
    assert piped.startswith("5,000 pods: 5,000 fit nowhere")
    assert "%" not in piped


def test_nothing_but_answers_goes_to_pipes(tmp_path: Path) -> None:
    where = dump(tmp_path, node(), pod())
    done = subprocess.run(
        [sys.executable, "-m", "bayplan", "explain", "-f", where, "p", "-o", "json"],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    assert json.loads(done.stdout)
    assert not done.stderr


def test_the_line_of_kube_scheduler_is_printed_to_the_letter(
    tmp_path: Path, capsys: Captured
) -> None:
    where = dump(tmp_path, node(), pod(cpu="8"))
    assert run(["explain", "-f", where, "p", "--no-fixes"]) == 1
    assert capsys.readouterr().out.splitlines()[1] == (
        "  0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate,"
        " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_terminal_that_was_closed_is_no_failure() -> None:
    ours, theirs = pty.openpty()
    words = (sys.executable, "-m", "bayplan", "volumes", "-f", "examples/clusters/web-shop")
    with subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        os.close(ours)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in errors) == (141, False)
