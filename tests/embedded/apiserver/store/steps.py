"""Random steps on a store, and how they are carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.store import ApiObjectStore


class Step(NamedTuple):
    """One thing that is done to one object."""

    action: str
    storage: str
    name: str
    value: int


def fields(_storage: str, obj: dict[str, Any]) -> dict[str, str]:
    return {"value": str(obj["value"])}


def new_store(path: Path | None, history: int = 12) -> ApiObjectStore:
    return ApiObjectStore(Database(path), fields, watch_cache_capacity=100, history=history)


def carry_out(store: ApiObjectStore, step: Step) -> None:
    key = ObjectKey(step.storage, "ns", step.name)
    current = store.get(key)
    obj = {
        "metadata": {"name": step.name, "uid": f"{step.storage}-{step.name}"},
        "value": step.value,
    }
    if step.action == "put":
        store.put(key, obj, current)
    elif current is not None:
        store.remove(key, current.object(), current)
