"""Changes that tests make to workloads."""

from __future__ import annotations

from typing import Any

from tests.embedded.simulation.virtual_clusters import VirtualCluster


def names(w: VirtualCluster) -> list[str]:
    return sorted(key.name for key in w.view.pods)


def scaled(obj: Any, replicas: int) -> Any:
    obj["spec"]["replicas"] = replicas
    return obj


def new_image(obj: Any) -> Any:
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = "new"
    return obj
