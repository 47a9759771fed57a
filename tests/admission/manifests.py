"""The manifests that are shipped."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from bayplan.client import Client
from bayplan.deploy import crds

CRDS = Path(str(resources.files(crds)))


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, or of all files of a folder."""
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


async def install_kinds(client: Client) -> None:
    """Have the server know queues and groups."""
    for one in documents(CRDS):
        await client.create(one)
