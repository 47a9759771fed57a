"""Strategic merge patch: merge patch that knows which lists are maps.

Lists of a type with a merge key are merged element by element; `$patch: delete|replace|merge`,
`$deleteFromPrimitiveList/…`, `$setElementOrder/…` and `$retainKeys` direct it. Kinds without a
type in the table (custom resources) cannot be patched this way.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.patch.jsonpatch import PatchError
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_PREFIX = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = "$setElementOrder/"


def apply_strategic_patch(
    document: JsonValue, patch: JsonObject, type_: ObjectType | None
) -> JsonValue:
    """The document after the patch; it may be changed in place."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _plain(patch)
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"unknown {_DIRECTIVE}: {directive!r}")
    merged: JsonObject = document if isinstance(document, dict) else {}
    _retain(merged, patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(merged, name, value, patch, type_)
    _delete_from_primitives(merged, patch)
    _order_untouched(merged, patch, type_)
    return merged


def _retain(merged: JsonObject, patch: JsonObject) -> None:
    kept = patch.get(_RETAIN)
    if kept is None:
        return
    if not isinstance(kept, list):
        raise PatchError(f"{_RETAIN} must be a list")
    for name in [name for name in merged if name not in kept]:
        del merged[name]


def _merge_field(
    merged: JsonObject, name: str, value: JsonValue, patch: JsonObject, type_: ObjectType | None
) -> None:
    field = type_.fields.get(name) if type_ is not None else None
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict) and field is not None and field.replace:
        merged[name] = _plain(value)
    elif isinstance(value, dict):
        merged[name] = apply_strategic_patch(merged.get(name), value, _inner(field))
    elif isinstance(value, list):
        order = patch.get(_ORDER_PREFIX + name)
        merged[name] = _merge_list(merged.get(name), value, field, order)
    else:
        merged[name] = value


def _inner(field: FieldType | None) -> ObjectType | None:
    if field is None or not field.is_object or field.is_map:
        return None
    return require_type(field.base)


def _merge_list(
    current: JsonValue, patch: list[JsonValue], field: FieldType | None, order: JsonValue
) -> list[JsonValue]:
    if field is None or not field.merge:
        return [_plain(item) for item in patch]
    existing: list[JsonValue] = current if isinstance(current, list) else []
    if not field.merge_key:
        found = existing + [item for item in patch if item not in existing]
        rank = order if isinstance(order, list) else patch
        return _placed(found, found, existing, rank)
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [_plain(item) for item in patch if item.keys() != {_DIRECTIVE}]
    found = list(existing)
    before = [_get(item, field.merge_key) for item in existing]
    for item in patch:
        _merge_element(found, item, field)
    return _ordered(found, patch if order is None else order, field.merge_key, before)


def _merge_element(found: list[JsonValue], item: JsonValue, field: FieldType) -> None:
    key = field.merge_key
    if not isinstance(item, dict) or key not in item:
        raise PatchError(f"an element of {field.name} does not have its merge key {key}")
    index = _position(found, key, item[key])
    if item.get(_DIRECTIVE) == "delete":
        while index is not None:
            del found[index]
            index = _position(found, key, item[key])
    elif index is None:
        found.append(apply_strategic_patch({}, item, _inner(field)))
    else:
        found[index] = apply_strategic_patch(found[index], item, _inner(field))


def _position(found: list[JsonValue], key: str, value: JsonValue) -> int | None:
    for index, item in enumerate(found):
        if isinstance(item, dict) and item.get(key) == value:
            return index
    return None


def _ordered(
    found: list[JsonValue], order: JsonValue, key: str, before: list[JsonValue]
) -> list[JsonValue]:
    """Elements in the order asked for; those that it does not name stay before what they were."""
    if not isinstance(order, list) or not all(isinstance(item, dict) for item in order):
        raise PatchError(f"{_ORDER_PREFIX} must be a list of objects with the key {key}")
    rank = [item.get(key) for item in order]
    return _placed(found, [_get(item, key) for item in found], before, rank)


def _get(item: JsonValue, key: str) -> JsonValue:
    return item.get(key) if isinstance(item, dict) else None


def _placed(
    found: list[JsonValue], keys: list[JsonValue], before: list[JsonValue], rank: list[JsonValue]
) -> list[JsonValue]:
    """Elements that are ranked, in their rank, among the others, which stay in their order.

    One that is not ranked comes first only if it stood before the ranked one, and both were there.
    """
    pairs = list(zip(keys, found, strict=True))
    ranked = sorted((pair for pair in pairs if pair[0] in rank), key=lambda p: rank.index(p[0]))
    others = [pair for pair in pairs if pair[0] not in rank]
    placed: list[JsonValue] = []
    while ranked and others:
        both = (others[0][0], ranked[0][0])
        known = all(key in before for key in both)
        first = known and before.index(both[0]) < before.index(both[1])
        placed.append((others if first else ranked).pop(0)[1])
    return placed + [item for _, item in ranked or others]


def _delete_from_primitives(merged: JsonObject, patch: JsonObject) -> None:
    for name, gone in patch.items():
        if not name.startswith(_DELETE_PREFIX):
            continue
        field = name.removeprefix(_DELETE_PREFIX)
        current = merged.get(field)
        if not isinstance(gone, list):
            raise PatchError(f"{name} must be a list")
        if isinstance(current, list):
            merged[field] = [item for item in current if item not in gone]


def _order_untouched(merged: JsonObject, patch: JsonObject, type_: ObjectType | None) -> None:
    """An order may be given for a list that the patch does not otherwise touch."""
    for name, order in patch.items():
        field = name.removeprefix(_ORDER_PREFIX)
        if not name.startswith(_ORDER_PREFIX) or field in patch or field not in merged:
            continue
        known = type_.fields.get(field) if type_ is not None else None
        if known is not None and known.merge_key and isinstance(merged[field], list):
            before = [_get(item, known.merge_key) for item in merged[field]]
            merged[field] = _ordered(merged[field], order, known.merge_key, before)


def _plain(value: JsonValue) -> JsonValue:
    """A value without directives."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if not name.startswith("$")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
