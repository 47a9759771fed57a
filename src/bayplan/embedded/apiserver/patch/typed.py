"""What an apply says must fit its kind's schema: fields that it has, and no element twice."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, encode, in_go
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.schema.roots import root_type
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type

_NAMES = {"string": "string", "bool": "boolean", "int32": "numeric", "int64": "numeric"}


def problems(obj: JsonObject, kind: Kind) -> list[str]:
    """What is wrong with what a manager wants of an object."""
    type_ = root_type(kind.group, kind.kind) if kind.custom is None else None
    if type_ is not None:
        return _of_object(obj, type_, "")
    meta = obj.get("metadata")
    found = _of_object(meta, require_type("meta.ObjectMeta"), ".metadata") if meta else []
    schema = kind.custom.schema if kind.custom is not None else None
    own = {name: item for name, item in obj.items() if name not in _COMMON}
    return found + (_of_schema(own, schema, "") if schema else [])


_COMMON = ("apiVersion", "kind", "metadata")


def told(found: list[str]) -> str:
    """Several problems as one."""
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
        return [told for place, one in inner for told in _of_element(one, field, place)]
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
    """The place of an element in a list that is a map (or a set, without keys)."""
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
    """The same, by the schema of a custom resource."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        is_map = schema.get("x-kubernetes-list-type") == "map"
        is_set = schema.get("x-kubernetes-list-type") == "set"
        found = _repeated(value, keys if is_map else (), path) if is_map or is_set else []
        inner = (_of_schema(item, items, f"{path}[{index}]") for index, item in enumerate(value))
        return found + [told for each in inner for told in each]
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
