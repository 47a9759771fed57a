"""A server that a test starts for itself, and ends by its own handle."""

from __future__ import annotations

import re
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.patience import PATIENCE


class Peer:
    """A running server; `ready` is what its log matched when it was."""

    def __init__(self, process: subprocess.Popen[str], ready: re.Pattern[str]) -> None:
        self.process = process
        self.log: deque[str] = deque(maxlen=200)
        self.ready: re.Match[str] | None = None
        self._pattern = ready
        self._event = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log.append(line)
            if self.ready is None and (match := self._pattern.search(line)):
                self.ready = match
                self._event.set()
        self._event.set()

    def wait_until_ready(self) -> None:
        self._event.wait(PATIENCE)
        if self.ready is None:
            raise RuntimeError(f"{self.process.args!r} did not start:\n{''.join(self.log)}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def running(
    command: Sequence[str], ready: str, env: Mapping[str, str] | None = None
) -> Iterator[Peer]:
    """Run a server; gives it once it is ready."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=None if env is None else dict(env),
    )
    peer = Peer(process, re.compile(ready))
    try:
        peer.wait_until_ready()
        yield peer
    finally:
        peer.stop()
