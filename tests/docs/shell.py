"""A shell as a reader has it: in a copy of the repository, with an empty home, commands in turn."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.docs.consoles import ROOT, Step, is_shown
from tests.patience import PATIENCE

_NOT_FOUND_IS_AN_ANSWER = re.compile(r"\bbayplan (explain|plan|check|simulate|images status)\b")
_END = "--- ended with "
_PREPARED = f"""
kubectl() {{
  if [ "$1" = wait ]; then set -- "$@" --timeout={PATIENCE:.0f}s; fi
  command kubectl "$@"
}}
bayplan() {{
  if [ "$1" = autoscaler ]; then set -- "$@" --listen 127.0.0.1:0; fi
  command bayplan "$@"
}}
"""
"""By itself `kubectl wait` gives up after 30 seconds, which is little on a busy machine; and the
autoscaler listens at Cluster Autoscaler's port, which only one of several pages could have.
"""


class Shell:
    """One shell; what runs until it is interrupted is ended with it."""

    def __init__(self, folder: Path, shell: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._shell = shell
        self._daemons = 0

    def prepare(self, commands: str) -> None:
        """Run commands of which a reader sees nothing."""
        printed, code = self._answer(commands)
        assert code == 0, printed

    def run(self, step: Step) -> None:
        """Run a step; raise AssertionError if it fails, or prints something else."""
        if step.stays:
            self._start(step)
            return
        printed, code = self._answer(step.command)
        answers = {0, 1, 3, 4, 5} if _NOT_FOUND_IS_AN_ANSWER.search(step.command) else {0}
        assert code in answers, f"$ {step.command}\n{printed}ended with {code}"
        assert "Traceback" not in printed, f"$ {step.command}\n{printed}"
        if step.shown:
            assert is_shown(step.shown, printed, whole=True), f"$ {step.command}\n{printed}"

    def _start(self, step: Step) -> None:
        """Start what stays, wait until it has said what the page shows, and export what it asks."""
        self._daemons += 1
        log = self._folder / f"daemon-{self._daemons}.log"
        command = step.command.removesuffix("&")
        self._answer(f"exec 3>{log}; {{ {command}\n}} >&3 2>&3 3>&- </dev/null &\nexec 3>&-")
        until = time.monotonic() + PATIENCE
        while not _said(step, log):
            alive = self._answer("kill -0 $!")[1] == 0
            assert alive, f"$ {command}\n{log.read_text()}has ended"
            assert time.monotonic() < until, f"$ {command}\n{log.read_text()}says nothing else"
            time.sleep(0.05)
        assert self._answer("kill -0 $!")[1] == 0, f"$ {command}\n{log.read_text()}has ended"
        self._answer(f'eval "$(grep ^export {log})"')

    def _answer(self, command: str) -> tuple[str, int]:
        assert self._shell.stdin
        self._shell.stdin.write(f"{{ {command}\n}} 2>&1\necho '{_END}'$?\n".encode())
        self._shell.stdin.flush()
        printed = self._read(command)
        text, _, code = printed.rpartition(_END)
        return text, int(code)

    def _read(self, command: str) -> str:
        assert self._shell.stdout
        printed, until = b"", time.monotonic() + PATIENCE
        while not re.search(rf"{_END}\d+\n$".encode(), printed):
            ready, _, _ = select.select([self._shell.stdout], [], [], until - time.monotonic())
            assert ready, f"$ {command}\n{printed.decode()}does not end"
            more = os.read(self._shell.stdout.fileno(), 65536)
            assert more, f"$ {command}\n{printed.decode()}ended the shell"
            printed += more
        return printed.decode()


def _said(step: Step, log: Path) -> bool:
    printed = log.read_text()
    exported = re.findall(r"^export (\w+)=.*\n", printed, re.MULTILINE)
    if not _exports(step.command) <= set(exported):
        return False
    return is_shown(step.shown, printed, whole=False) if step.shown else bool(printed.strip())


def _exports(command: str) -> set[str]:
    """The variables that a command asks to be exported."""
    words = set(command.split())
    tells = "up" in words or ("apiserver" in words and "--kubeconfig" not in words)
    cluster = {"KUBECONFIG"} if tells else set()
    return cluster | ({"BAYPLAN_CLOUD"} if words & {"--cloud-address", "--cloud-socket"} else set())


@contextlib.contextmanager
def reader(folder: Path) -> Iterator[Shell]:
    """A shell in a folder that looks like the repository, with what is installed in its PATH."""
    _furnish(folder)
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=folder,
        env={"PATH": tools, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        opened = Shell(folder, shell)
        opened.prepare(_PREPARED)
        yield opened
    finally:
        _end(shell)


def _furnish(folder: Path) -> None:
    """The files of the repository, and an environment that `make` takes for the one it made."""
    for path in ROOT.iterdir():
        if path.name not in {".venv", ".git", "build"}:
            (folder / path.name).symlink_to(path)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for made in ("runs", "ready"):
        (folder / ".venv" / made).touch()


def _end(shell: subprocess.Popen[bytes]) -> None:
    """End all that was started: in order, so that nothing is left behind, or else at once."""
    for how, patience in ((signal.SIGTERM, 30.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                shell.communicate(timeout=patience)
            _wait_for_all(shell.pid, patience)


def _wait_for_all(group: int, patience: float) -> None:
    """Wait for processes that have outlived their shell; ProcessLookupError once all are gone."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        os.killpg(group, 0)
        time.sleep(0.05)
