"""Our own image service, as a process of its own: `bayplan cri`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.images.parts.service import CONFIG
from tests.images.peers.process import running


@contextmanager
def running_bayplan_cri(home: Path, at: Path | None = None) -> Iterator[str]:
    """Run the service with everything of its own under `home`; gives its socket."""
    config = home / "config.toml"
    config.write_text(CONFIG)
    with tempfile.TemporaryDirectory(prefix="bayplan-") as short:
        socket = str(at or f"{short}/cri.sock")
        command = [sys.executable, "-c", "from bayplan.cli.main import main; main()", "cri"]
        options = ["--socket", socket, "--root", str(home / "store"), "--config", str(config)]
        with running([*command, *options], "for the runtime handlers"):
            yield socket
