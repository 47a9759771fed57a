"""Empty folders to work in: an empty home, no environment, no sources beside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALLERS = (".cache", ".npm", ".rustup")
PATIENCE = 900.0
"""Seconds for what installs from a registry; nothing is judged by it."""
INSTALLING = 3 * PATIENCE
"""Seconds for a test that installs several times."""


class EmptyHome:
    """An empty folder with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home = folder / "home"
        home.mkdir()
        hidden = ("VIRTUAL_ENV", "KUBECONFIG", "MAKEFLAGS", "MAKELEVEL", "PYTHONPATH", "COV_CORE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        own = str(Path(sys.executable).parent)
        path = [one for one in kept["PATH"].split(":") if one != own]
        self.environment = kept | {"HOME": str(home), "PATH": ":".join(path), "COLUMNS": "100"}

    def run(self, *words: str | Path, wanted: int = 0) -> str:
        """What a command writes, both streams; it must end as wanted."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == wanted, done.stdout[-4000:]
        return done.stdout

    def left_in_home(self) -> list[str]:
        """What is in the home now, but for what installers leave there."""
        home = Path(self.environment["HOME"])
        return sorted(one.name for one in home.iterdir() if one.name not in INSTALLERS)


def copy_sources(to: Path) -> None:
    """What a clone of this tree would have, with what is not committed yet."""
    for name in _tracked():
        source = ROOT / name
        if source.is_file():
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def _tracked() -> Iterator[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    yield from filter(None, listed.stdout.decode().split("\0"))
