"""Managed fields: who set which fields of an object, as `metadata.managedFields` keeps it.

Ownership is kept from an object's first server-side apply on. What was there before that belongs
to the manager `before-first-apply`; objects that are never applied carry no bookkeeping at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.patch.fieldsets import (
    FieldSet,
    Path,
    fields_of,
    leaves,
    tree_of,
    values_of,
)
from bayplan.embedded.apiserver.patch.shapes import Shape

BEFORE = "before-first-apply"
_UNOWNED = frozenset(
    ("name", "namespace", "generateName", "uid", "resourceVersion", "generation", "selfLink")
) | {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"}


@dataclass(frozen=True, slots=True)
class Manager:
    """Somebody who sets fields."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(slots=True)
class Ownership:
    """Who owns which fields of an object."""

    owned: dict[Manager, set[Path]] = field(default_factory=dict)
    times: dict[Manager, str] = field(default_factory=dict)

    @classmethod
    def read(cls, obj: JsonObject) -> Ownership:
        """The ownership that an object carries."""
        ownership = cls()
        for entry in obj["metadata"].get("managedFields") or ():
            manager = Manager(
                entry.get("manager") or "",
                entry.get("operation") or "Update",
                entry.get("apiVersion") or "",
                entry.get("subresource") or "",
            )
            ownership.owned[manager] = set(leaves(entry.get("fieldsV1") or {}))
            ownership.times[manager] = entry.get("time") or ""
        return ownership

    def write(self, obj: JsonObject) -> None:
        """Let an object carry this ownership."""
        entries = [self._entry(manager, paths) for manager, paths in self.owned.items() if paths]
        if entries:
            obj["metadata"]["managedFields"] = entries
        else:
            obj["metadata"].pop("managedFields", None)

    def _entry(self, manager: Manager, paths: set[Path]) -> JsonObject:
        entry: JsonObject = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": tree_of(paths),
        }
        if self.times.get(manager):
            entry["time"] = self.times[manager]
        if manager.subresource:
            entry["subresource"] = manager.subresource
        return entry

    def give(self, manager: Manager, paths: set[Path], now: str) -> None:
        """Let a manager own exactly these fields."""
        if self.owned.get(manager) != paths:
            self.times[manager] = now
        self.owned[manager] = paths

    def others(self, manager: Manager) -> dict[Manager, set[Path]]:
        """What everybody else owns."""
        return {other: paths for other, paths in self.owned.items() if other != manager}


def owned_paths(obj: JsonObject, shape: Shape) -> set[Path]:
    """The fields of an object that can be owned: not its identity, nor what the server keeps."""
    fields: FieldSet = fields_of(
        {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}, shape
    )
    meta = fields.get("f:metadata")
    if meta is not None:
        fields["f:metadata"] = {k: v for k, v in meta.items() if k[2:] not in _UNOWNED}
        if not fields["f:metadata"]:
            del fields["f:metadata"]
    return set(leaves(fields))


def track(new: JsonObject, old: JsonObject, shape: Shape, manager: Manager, now: str) -> None:
    """After an ordinary write: whoever changed a field owns it, and nobody owns what is gone."""
    ownership = Ownership.read(old)
    if not ownership.owned:
        return
    if new["metadata"].get("managedFields") == []:
        new["metadata"].pop("managedFields")
        return
    present = owned_paths(new, shape)
    before, after = values_of(old, shape), values_of(new, shape)
    changed = {path for path in present if before.get(path) != after.get(path)}
    for other in list(ownership.owned):
        kept = ownership.owned[other] & present
        ownership.owned[other] = kept - changed if other != manager else kept
    if changed:
        ownership.give(manager, ownership.owned.get(manager, set()) | changed, now)
    ownership.write(new)
