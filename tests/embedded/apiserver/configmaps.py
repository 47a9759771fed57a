"""ConfigMaps, which tests use as the plainest objects."""

from __future__ import annotations

from typing import Any

CMS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}
