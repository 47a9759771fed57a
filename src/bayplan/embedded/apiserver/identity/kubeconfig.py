"""The kubeconfig that the server writes for its users."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

_NAME = "bayplan"


def kubeconfig(url: str, ca: bytes, user: str, credentials: dict[str, str]) -> str:
    """A kubeconfig with one cluster, one user and one context."""
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": user}}],
        "current-context": _NAME,
    }
    return yaml.safe_dump(document, sort_keys=False)


def check_place(path: Path) -> None:
    """Raise OSError if a kubeconfig cannot be written there, or would replace somebody else's."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory, not a kubeconfig")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # it would be replaced, and removed in the end
        raise FileExistsError(f"{path}: a device or a pipe, not a file")
    if path.exists() and not _is_replaceable(path.read_bytes()):
        raise FileExistsError(f"{path}: not written by this server, and not replaced by it")


def _is_replaceable(data: bytes) -> bool:
    """Whether a file is empty, or a kubeconfig that knows no cluster but ours."""
    try:
        document = yaml.safe_load(data)
    except yaml.YAMLError:
        return False
    if not isinstance(document, dict):
        return document is None
    clusters = document.get("clusters")
    names = [one.get("name") for one in clusters or [] if isinstance(one, dict)]
    return bool(names) and set(names) == {_NAME}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(text)
    temporary.replace(path)
