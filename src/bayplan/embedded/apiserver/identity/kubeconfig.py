"""The kubeconfig that the server writes for its users."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml


def kubeconfig(url: str, ca: bytes, user: str, credentials: dict[str, str]) -> str:
    """A kubeconfig with one cluster, one user and one context."""
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bayplan", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "bayplan", "context": {"cluster": "bayplan", "user": user}}],
        "current-context": "bayplan",
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(text)
    temporary.replace(path)
