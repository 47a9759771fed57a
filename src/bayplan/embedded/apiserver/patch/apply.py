"""Server-side apply: a manager says what it wants, and owns just that.

What the manager used to want and no longer does is removed, unless somebody else owns it too. A
field that somebody else owns with another value is a conflict, unless the manager insists
(`force`).
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.errors import ApiError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone
from bayplan.embedded.apiserver.patch.fieldsets import (
    FieldSet,
    Path,
    element_key,
    is_key,
    remove_all,
    spell,
    values_of,
)
from bayplan.embedded.apiserver.patch.managed import BEFORE, Manager, Ownership, owned_paths
from bayplan.embedded.apiserver.patch.shapes import Part, Shape


class Intent(NamedTuple):
    """What a manager wants of an object."""

    wanted: JsonObject
    shape: Shape
    manager: Manager
    now: str
    force: bool = False


def apply(live: JsonObject, intent: Intent) -> JsonObject:
    """The live object after an apply; 409 if somebody else owns what it would change."""
    wanted, shape, manager = intent.wanted, intent.shape, intent.manager
    if (wanted.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    ownership = Ownership.read(live)
    if not ownership.owned:
        before = Manager(BEFORE, "Update", manager.api_version)
        ownership.give(before, owned_paths(live, shape), intent.now)
    paths = owned_paths(wanted, shape)
    _settle(ownership, _conflicts(ownership, intent, paths, live), force=intent.force)
    merged: JsonObject = _merged(live, wanted, Part(shape))
    _remove_dropped(merged, ownership, intent, paths)
    ownership.give(manager, paths, intent.now)
    ownership.write(merged)
    return merged


def first_apply(intent: Intent) -> JsonObject:
    """An object that an apply creates."""
    obj: JsonObject = clone(intent.wanted)
    ownership = Ownership()
    ownership.give(intent.manager, owned_paths(intent.wanted, intent.shape), intent.now)
    obj.setdefault("metadata", {})
    ownership.write(obj)
    return obj


Conflicts = dict[Manager, set[Path]]


def _conflicts(
    ownership: Ownership, intent: Intent, paths: set[Path], live: JsonObject
) -> Conflicts:
    before, after = values_of(live, intent.shape), values_of(intent.wanted, intent.shape)
    changed = {
        path
        for path in paths
        if not path[-1].startswith("k:") and before.get(path) != after.get(path)
    }
    found = {other: owned & changed for other, owned in ownership.others(intent.manager).items()}
    return {other: shared for other, shared in found.items() if shared}


def _settle(ownership: Ownership, found: Conflicts, *, force: bool) -> None:
    if found and not force:
        raise _refusal(found)
    for other, shared in found.items():
        ownership.owned[other] -= shared


def _refusal(found: Conflicts) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{other.name}" using {other.api_version}',
            "field": spell(path),
        }
        for other, paths in found.items()
        for path in sorted(paths)
    ]
    number = f"{len(causes)} conflict" + ("s" if len(causes) > 1 else "")
    names = ", ".join(sorted({f'"{other.name}"' for other in found}))
    fields = "\n- ".join(["", *(str(cause["field"]) for cause in causes)])
    message = f"Apply failed with {number}: conflicts with {names}:{fields}"
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    return ApiError(409, "Conflict", message, {"causes": causes})


def _merged(live: JsonValue, wanted: JsonValue, part: Part) -> JsonValue:
    if part.atomic or type(live) is not type(wanted):
        return clone(wanted)
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            if name in live:
                live[name] = _merged(live[name], value, part.shape.child(name))
            else:
                live[name] = clone(value)
        return live
    if isinstance(wanted, list) and (part.keys or part.is_set):
        return _merged_list(live, wanted, part)
    return clone(wanted)


def _merged_list(live: list[JsonValue], wanted: list[JsonValue], part: Part) -> list[JsonValue]:
    by_key = {element_key(item, part): item for item in live}
    element = Part(part.shape)
    for item in wanted:
        key = element_key(item, part)
        by_key[key] = _merged(by_key[key], item, element) if key in by_key else clone(item)
    return list(by_key.values())


def _remove_dropped(
    merged: JsonObject, ownership: Ownership, intent: Intent, paths: set[Path]
) -> None:
    """Take out what the manager no longer wants and nobody else owns."""
    others: set[Path] = set()
    for owned in ownership.others(intent.manager).values():
        others |= owned
    kept = others | paths
    around = {path[:length] for path in kept for length in range(1, len(path) + 1)}
    gone: FieldSet = {}
    for path in sorted(ownership.owned.get(intent.manager, set()) - around, key=len):
        if not is_key(path):
            _mark(gone, path)
    remove_all(merged, gone, Part(intent.shape))


def _mark(gone: FieldSet, path: Path) -> None:
    """Add a path to a tree, unless it is inside of what goes already."""
    inner, fresh = gone, False
    for name in path:
        if not fresh and not inner and inner is not gone:
            return
        fresh = name not in inner
        inner = inner.setdefault(name, {})
