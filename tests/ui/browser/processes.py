"""`bayplan` as a process of its own, that prints where it listens, and ends on a signal."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[3]
BAYPLAN = str(Path(sys.executable).with_name("bayplan"))


class Command:
    """A command that runs until it is stopped."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process = subprocess.Popen(
            (BAYPLAN, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        )
        self._said = b""

    def says(self, pattern: str, within: float = PATIENCE) -> str:
        """What the first group of the pattern matches, as soon as the command prints it."""
        end = time.monotonic() + within
        out = self._process.stdout
        assert out is not None
        while not (found := re.search(pattern, self._said.decode(errors="replace"))):
            more = _read(out, end - time.monotonic())
            if not more:
                raise AssertionError(f"{self._arguments}: never said {pattern!r}: {self._output()}")
            self._said += more
        return found.group(1)

    def stop(self) -> None:
        """End it as an operator would."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _output(self) -> str:
        self._process.kill()
        out, errors = self._process.communicate()
        return (self._said + out + errors).decode(errors="replace")


def _read(out: IO[bytes], seconds: float) -> bytes:
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        if seconds <= 0 or not selector.select(seconds):
            return b""
    return os.read(out.fileno(), 65536)


def page_of(command: Command) -> str:
    """The address that `bayplan ui` prints."""
    return command.says(r"page: (\S+)")
