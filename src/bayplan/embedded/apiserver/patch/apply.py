"""Server-side apply: a manager applies a configuration and owns exactly its fields.

Fields that the manager applied before and no longer does are removed, unless another manager owns
them too. A field that another manager owns with another value is a conflict, unless `force` is set.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.errors import StatusError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode, in_go
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.patch.managedfields import (
    BEFORE,
    FieldDescriptor,
    FieldManager,
    FieldOwnership,
    FieldSet,
    Path,
    ValueType,
    element_key,
    format_path,
    is_key,
    ownable_paths,
    remove_fields,
    values_of,
)
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type, root_type

_NAMES = {"string": "string", "bool": "boolean", "int32": "numeric", "int64": "numeric"}


def problems(obj: JsonObject, kind: ServedKind) -> list[str]:
    """Return the fields of an applied configuration that its schema does not have."""
    type_ = root_type(kind.group, kind.kind) if kind.custom is None else None
    if type_ is not None:
        return _of_object(obj, type_, "")
    meta = obj.get("metadata")
    found = _of_object(meta, require_type("meta.ObjectMeta"), ".metadata") if meta else []
    schema = kind.custom.schema if kind.custom is not None else None
    own = {name: item for name, item in obj.items() if name not in _COMMON}
    return found + (_of_schema(own, schema, "") if schema else [])


_COMMON = ("apiVersion", "kind", "metadata")


def joined(found: list[str]) -> str:
    """Return several problems as one message."""
    return found[0] if len(found) == 1 else "errors:" + "".join(f"\n  {one}" for one in found)


def _of_object(value: JsonValue, type_: ObjectType, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path}: expected map, got &{{{in_go(value)}}}"]
    found: list[str] = []
    for name, item in value.items():
        field = type_.fields.get(name)
        if field is None:
            found.append(f"{path}.{name}: field not declared in schema")
        elif item is not None:
            found += _of_field(item, field, f"{path}.{name}")
    return found


def _of_field(item: JsonValue, field: FieldType, path: str) -> list[str]:
    if field.is_list:
        return _of_list(item, field, path)
    if field.is_map:
        if not isinstance(item, dict):
            return [f"{path}: expected map, got &{{{in_go(item)}}}"]
        inner = ((f"{path}.{key}", one) for key, one in item.items())
        return [joined for place, one in inner for joined in _of_element(one, field, place)]
    return _of_element(item, field, path)


def _of_list(items: JsonValue, field: FieldType, path: str) -> list[str]:
    if not isinstance(items, list):
        return [f"{path}: expected list, got &{{{in_go(items)}}}"]
    found = _repeated(items, field.list_keys, path) if field.list_keys else []
    if field.is_set:
        found = _repeated(items, (), path)
    for index, item in enumerate(items):
        place = f"{path}{_key(item, field.list_keys)}" if field.list_keys else f"{path}[{index}]"
        found += _of_element(item, field, place)
    return found


def _of_element(item: JsonValue, field: FieldType, path: str) -> list[str]:
    if field.is_object:
        return _of_object(item, require_type(field.base), path)
    if item is None or _fits(item, field.base):
        return []
    if field.base == "string":
        shown = encode(item).decode()
        return [f"{path}: expected string, got &value.valueUnstructured{{Value:{shown}}}"]
    if field.base == "bool":
        return [f"{path}: expected boolean, got &{{{in_go(item)}}}"]
    return [f"{path}: expected numeric (int or float), got {_kind(item)}"]


def _fits(item: JsonValue, base: str) -> bool:
    if base == "string":
        return isinstance(item, str)
    if base == "bool":
        return isinstance(item, bool)
    if base in ("int32", "int64", "double"):
        return isinstance(item, int | float) and not isinstance(item, bool)
    return True


def _kind(item: JsonValue) -> str:
    return "string" if isinstance(item, str) else "bool" if isinstance(item, bool) else "map"


def _key(item: JsonValue, keys: tuple[str, ...]) -> str:
    """Return the key of an element in a list of type map (or set, without keys)."""
    if not keys or not isinstance(item, dict):
        return f"[={encode(item).decode()}]"
    pairs = (f"{key}={encode(item[key]).decode()}" for key in sorted(keys) if key in item)
    return f"[{','.join(pairs)}]"


def _repeated(items: list[JsonValue], keys: tuple[str, ...], path: str) -> list[str]:
    seen: set[str] = set()
    found: dict[str, None] = {}
    for item in items:
        key = _key(item, keys)
        if key in seen:
            found[f"{path}: duplicate entries for key {key}"] = None
        seen.add(key)
    return list(found)


def _of_schema(value: JsonValue, schema: JsonObject, path: str) -> list[str]:
    """Return the same problems, by the schema of a custom resource."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        is_map = schema.get("x-kubernetes-list-type") == "map"
        is_set = schema.get("x-kubernetes-list-type") == "set"
        found = _repeated(value, keys if is_map else (), path) if is_map or is_set else []
        inner = (_of_schema(item, items, f"{path}[{index}]") for index, item in enumerate(value))
        return found + [joined for each in inner for joined in each]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    others, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    found = []
    for name, item in value.items():
        inner_schema = properties.get(name, others)
        if isinstance(inner_schema, dict):
            found += _of_schema(item, inner_schema, f"{path}.{name}")
        elif inner_schema is None and (properties or not schema.get("type")):
            found.append(f"{path}.{name}: field not declared in schema")
    return found


class ApplyIntent(NamedTuple):
    """An applied configuration, its manager and its options."""

    wanted: JsonObject
    value_type: ValueType
    manager: FieldManager
    now: str
    force: bool = False


def apply(live: JsonObject, intent: ApplyIntent) -> JsonObject:
    """Return the live object after an apply; 409 if other managers own changed fields."""
    wanted, value_type, manager = intent.wanted, intent.value_type, intent.manager
    if (wanted.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    ownership = FieldOwnership.read(live)
    if not ownership.owned:
        before = FieldManager(BEFORE, "Update", manager.api_version)
        ownership.set_fields(before, ownable_paths(live, value_type), intent.now)
    paths = ownable_paths(wanted, value_type)
    _settle(ownership, _conflicts(ownership, intent, paths, live), force=intent.force)
    merged: JsonObject = _merged(live, wanted, FieldDescriptor(value_type))
    _remove_dropped(merged, ownership, intent, paths)
    ownership.set_fields(manager, paths, intent.now)
    ownership.write(merged)
    return merged


def first_apply(intent: ApplyIntent) -> JsonObject:
    """Return a new object from an applied configuration."""
    obj: JsonObject = clone(intent.wanted)
    ownership = FieldOwnership()
    ownership.set_fields(
        intent.manager, ownable_paths(intent.wanted, intent.value_type), intent.now
    )
    obj.setdefault("metadata", {})
    ownership.write(obj)
    return obj


Conflicts = dict[FieldManager, set[Path]]


def _conflicts(
    ownership: FieldOwnership, intent: ApplyIntent, paths: set[Path], live: JsonObject
) -> Conflicts:
    before, after = values_of(live, intent.value_type), values_of(intent.wanted, intent.value_type)
    changed = {
        path
        for path in paths
        if not path[-1].startswith("k:") and before.get(path) != after.get(path)
    }
    found = {other: owned & changed for other, owned in ownership.others(intent.manager).items()}
    return {other: shared for other, shared in found.items() if shared}


def _settle(ownership: FieldOwnership, found: Conflicts, *, force: bool) -> None:
    if found and not force:
        raise _refusal(found)
    for other, shared in found.items():
        ownership.owned[other] -= shared


def _refusal(found: Conflicts) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{other.name}" using {other.api_version}',
            "field": format_path(path),
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
    return StatusError(409, "Conflict", message, {"causes": causes})


def _merged(live: JsonValue, wanted: JsonValue, descriptor: FieldDescriptor) -> JsonValue:
    if descriptor.atomic or type(live) is not type(wanted):
        return clone(wanted)
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            if name in live:
                live[name] = _merged(live[name], value, descriptor.value_type.child(name))
            else:
                live[name] = clone(value)
        return live
    if isinstance(wanted, list) and (descriptor.keys or descriptor.is_set):
        return _merged_list(live, wanted, descriptor)
    return clone(wanted)


def _merged_list(
    live: list[JsonValue], wanted: list[JsonValue], descriptor: FieldDescriptor
) -> list[JsonValue]:
    by_key = {element_key(item, descriptor): item for item in live}
    element = FieldDescriptor(descriptor.value_type)
    for item in wanted:
        key = element_key(item, descriptor)
        by_key[key] = _merged(by_key[key], item, element) if key in by_key else clone(item)
    return list(by_key.values())


def _remove_dropped(
    merged: JsonObject, ownership: FieldOwnership, intent: ApplyIntent, paths: set[Path]
) -> None:
    """Remove fields that the manager no longer applies and no other one owns."""
    others: set[Path] = set()
    for owned in ownership.others(intent.manager).values():
        others |= owned
    kept = others | paths
    around = {path[:length] for path in kept for length in range(1, len(path) + 1)}
    gone: FieldSet = {}
    for path in sorted(ownership.owned.get(intent.manager, set()) - around, key=len):
        if not is_key(path):
            _mark(gone, path)
    remove_fields(merged, gone, FieldDescriptor(intent.value_type))


def _mark(gone: FieldSet, path: Path) -> None:
    """Add a path to a tree, unless an ancestor is in it."""
    inner, fresh = gone, False
    for name in path:
        if not fresh and not inner and inner is not gone:
            return
        fresh = name not in inner
        inner = inner.setdefault(name, {})
