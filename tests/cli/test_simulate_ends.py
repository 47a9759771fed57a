"""However `bayplan simulate` is ended, none of its processes goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.simulation.runs import SMALL
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(number: signal.Signals, tmp_path: Path) -> None:
    cluster, kept = tmp_path / "cluster.yaml", tmp_path / "tmp"
    cluster.write_bytes(SMALL)
    kept.mkdir()
    words = ("simulate", str(cluster), "--for", "2000h", "--seeds", "2", "--jobs", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "bayplan", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(kept)},
    )
    _wait_for_workers(process.pid)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)  # whoever still works holds the pipe open
    if number is not signal.SIGKILL:
        assert process.returncode == 130
        assert list(kept.iterdir()) == []


def _wait_for_workers(pid: int) -> None:
    """Until both runs are being made."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if sum(_is_at_work(child) for child in children.read_text().split()) == 2:
            return
        time.sleep(0.1)
    pytest.fail("the runs did not begin")


def _is_at_work(pid: str) -> bool:
    """Whether a process has come as far as to watch its parent, or to run."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"spawn_main" in words and len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
