"""Debian's docker-registry, filled by skopeo with images that a test makes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.images.peers.layouts import Layout
from tests.images.peers.process import running

USER, PASSWORD = "ann", "open-sesame"
_HTPASSWD = "ann:$2b$04$abcdefghijklmnopqrstuuXcjcm5avyCiJoD2uS24xa2lb6fjMB3G\n"


def is_installed() -> bool:
    return bool(shutil.which("docker-registry") and shutil.which("skopeo"))


@dataclass(frozen=True)
class Registry:
    """A running registry; `guarded` ones want a user and a password."""

    host: str
    guarded: bool = False

    def push(self, layout: Layout, name: str) -> str:
        """Push a layout, index and all; gives the name to pull it by."""
        reference = f"{self.host}/{name}"
        login = ["--dest-creds", f"{USER}:{PASSWORD}"] if self.guarded else []
        subprocess.run(
            ["skopeo", "--insecure-policy", "copy", "--all", "--dest-tls-verify=false", *login,
             f"oci:{layout.folder}", f"docker://{reference}"],
            check=True, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return reference


@contextmanager
def running_registry(home: Path, *, guarded: bool = False) -> Iterator[Registry]:
    """Run a registry on a free port of this machine."""
    home.mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": os.environ["PATH"],
        "REGISTRY_VERSION": "0.1",
        "REGISTRY_STORAGE": "filesystem",
        "REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY": str(home / "data"),
        "REGISTRY_HTTP_ADDR": "127.0.0.1:0",
        "REGISTRY_HTTP_SECRET": "only-for-tests",
        "OTEL_TRACES_EXPORTER": "none",
    }
    config = home / "config.yml"
    config.write_text("version: 0.1\nstorage: {filesystem: {}}\nhttp: {}\n")
    if guarded:
        users = home / "htpasswd"
        users.write_text(_HTPASSWD)
        env |= {"REGISTRY_AUTH_HTPASSWD_REALM": "test", "REGISTRY_AUTH_HTPASSWD_PATH": str(users)}
    command = ["docker-registry", "serve", str(config)]
    with running(command, r"listening on 127\.0\.0\.1:(?P<port>\d+)", env) as ready:
        yield Registry(f"127.0.0.1:{ready['port']}", guarded)
