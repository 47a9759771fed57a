"""Strategic merge patch: a merge patch with lists merged by key.

Lists of a type with a merge key are merged element by element, as directed by `$patch:
delete|replace|merge`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…` and `$retainKeys`. Custom
resources do not support it.
"""

from __future__ import annotations

from collections import deque

from bayplan.embedded.apiserver.errors import StatusError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, encode, in_go
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_PREFIX = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = "$setElementOrder/"
_GONE = object()


def apply_strategic_patch(
    document: JsonValue, patch: JsonObject, type_: ObjectType | None
) -> JsonValue:
    """Return the patched document; it may be changed in place."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _plain(patch)
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise _fault(f"unknown patch type: {in_go(directive)} in map: {in_go(patch)}")
    merged: JsonObject = document if isinstance(document, dict) else {}
    _retain(merged, patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(merged, name, value, patch, type_)
    _delete_from_primitives(merged, patch)
    _order_untouched(merged, patch, type_)
    return merged


def _fault(message: str) -> StatusError:
    """Return 500, as kube-apiserver does for such patches."""
    return StatusError(500, "", message)


def _check_same_type(existing: list[JsonValue], patch: list[JsonValue]) -> None:
    """Check that both values are objects, lists or neither."""
    kinds = {
        next((kind for kind in (dict, list) if isinstance(item, kind)), str)
        for item in (*existing, *patch)
    }
    if len(kinds) > 1:
        raise _fault(f"list element types are not identical: {in_go([existing, patch])}")


def _retain(merged: JsonObject, patch: JsonObject) -> None:
    kept = patch.get(_RETAIN)
    if kept is None:
        return
    if not isinstance(kept, list):
        raise bad_request("invalid patch format of retainKeys")
    names = {name for name in kept if isinstance(name, str)}
    if any(name not in names and name[:1] != "$" and v is not None for name, v in patch.items()):
        raise bad_request("invalid patch format of retainKeys")
    for name in merged.keys() - names:
        del merged[name]


def _merge_field(
    merged: JsonObject, name: str, value: JsonValue, patch: JsonObject, type_: ObjectType | None
) -> None:
    field = type_.fields.get(name) if type_ is not None else None
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict) and field is not None and field.replace:
        merged[name] = _plain(value)
    elif name not in merged:
        merged[name] = _without_nulls(_plain(value))
    elif isinstance(value, dict) and name not in merged and _DIRECTIVE in value:
        merged[name] = {}  # a directive without a list to direct
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
    if field.merge_key:
        _check_same_type(existing, patch)
    if not field.merge_key:
        known = _places(existing)
        found = existing + [item for item in patch if encode(item) not in known]
        rank = order if isinstance(order, list) else patch
        return _placed(found, found, existing, rank)
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [_plain(item) for item in patch if item.keys() != {_DIRECTIVE}]
    before = [_get(item, field.merge_key) for item in existing]
    found = _merge_elements(existing, patch, field)
    return _ordered(found, patch if order is None else order, field.merge_key, before)


def _merge_elements(
    existing: list[JsonValue], patch: list[JsonValue], field: FieldType
) -> list[JsonValue]:
    key, inner = field.merge_key, _inner(field)
    found: list[JsonValue] = list(existing)
    places: dict[bytes, list[int]] = {}
    for index, item in enumerate(found):
        if isinstance(item, dict):
            places.setdefault(encode(item.get(key)), []).append(index)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise _fault(f"map: {in_go(item)} does not contain declared merge key: {key}")
        mark = encode(item[key])
        if item.get(_DIRECTIVE) == "delete":
            for index in places.pop(mark, ()):
                found[index] = _GONE
        elif mark in places:
            index = places[mark][0]
            found[index] = apply_strategic_patch(found[index], item, inner)
        else:
            places[mark] = [len(found)]
            found.append(apply_strategic_patch({}, item, inner))
    return [item for item in found if item is not _GONE]


def _places(values: list[JsonValue]) -> dict[bytes, int]:
    """Return the first index of each value."""
    return {encode(value): index for index, value in reversed(list(enumerate(values)))}


def _ordered(
    found: list[JsonValue], order: JsonValue, key: str, before: list[JsonValue]
) -> list[JsonValue]:
    """Return elements in the given order; those that it does not name keep their position."""
    if not isinstance(order, list) or not all(isinstance(item, dict) for item in order):
        raise bad_request("invalid patch format of setElementOrder list")
    rank = [item.get(key) for item in order]
    return _placed(found, [_get(item, key) for item in found], before, rank)


def _get(item: JsonValue, key: str) -> JsonValue:
    return item.get(key) if isinstance(item, dict) else None


def _placed(
    found: list[JsonValue], keys: list[JsonValue], before: list[JsonValue], rank: list[JsonValue]
) -> list[JsonValue]:
    """Merge ranked elements, in their rank, with the others, which keep their order.

    An unranked element comes first only if it stood before the ranked one, and both existed.
    """
    ranks, stood = _places(rank), _places(before)
    pairs = [(encode(key), item) for key, item in zip(keys, found, strict=True)]
    ranked = deque(sorted((p for p in pairs if p[0] in ranks), key=lambda p: ranks[p[0]]))
    others = deque(pair for pair in pairs if pair[0] not in ranks)
    placed: list[JsonValue] = []
    while ranked and others:
        other, named = stood.get(others[0][0]), stood.get(ranked[0][0])
        first = other is not None and named is not None and other < named
        placed.append((others if first else ranked).popleft()[1])
    return placed + [item for _, item in ranked or others]


def _delete_from_primitives(merged: JsonObject, patch: JsonObject) -> None:
    for name, gone in patch.items():
        if not name.startswith(_DELETE_PREFIX):
            continue
        field = name.removeprefix(_DELETE_PREFIX)
        current = merged.get(field)
        if isinstance(current, list) and isinstance(gone, list):
            _check_same_type(current, gone)
            marks = _places(gone)
            merged[field] = [item for item in current if encode(item) not in marks]


def _order_untouched(merged: JsonObject, patch: JsonObject, type_: ObjectType | None) -> None:
    """Apply an order to a list that the patch does not otherwise change."""
    for name, order in patch.items():
        field = name.removeprefix(_ORDER_PREFIX)
        if not name.startswith(_ORDER_PREFIX) or field in patch or field not in merged:
            continue
        known = type_.fields.get(field) if type_ is not None else None
        if known is not None and known.merge_key and isinstance(merged[field], list):
            before = [_get(item, known.merge_key) for item in merged[field]]
            merged[field] = _ordered(merged[field], order, known.merge_key, before)


def _without_nulls(value: JsonValue) -> JsonValue:
    """Return a value without nulls, which would delete nothing."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _plain(value: JsonValue) -> JsonValue:
    """Return a value without directives."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if not name.startswith("$")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
