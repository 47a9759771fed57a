"""What a server refuses: objects changed in one place, and what is said of that place."""

from __future__ import annotations

import copy
from typing import Any

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.rest import writes
from bayplan.embedded.apiserver.rest.backend import Backend
from tests.embedded.apiserver.backends import call_of, new_backend

Json = dict[str, Any]
NOTHING = object()
"""In place of a value: the field is not there."""

_SHORT = {
    "FieldValueInvalid": "invalid",
    "FieldValueRequired": "required",
    "FieldValueForbidden": "forbidden",
    "FieldValueNotSupported": "unsupported",
    "FieldValueDuplicate": "duplicate",
    "FieldValueTooLong": "too long",
    "InternalError": "internal",
}


def with_changes(obj: Json, changes: Json) -> Json:
    """A copy of an object with other values at dotted paths."""
    changed = copy.deepcopy(obj)
    for path, value in changes.items():
        _put(changed, path, value)
    return changed


def _put(obj: Any, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        obj = obj[int(part)] if isinstance(obj, list) else obj.setdefault(part, {})
    if value is NOTHING:
        del obj[last]
    else:
        obj[last] = value


def short_causes(refused: StatusError | None) -> list[str]:
    """The causes of a refusal in short, each as `field: reason`."""
    causes = ((refused.details or {}).get("causes") or []) if refused is not None else []
    return sorted({f"{one['field']}: {_SHORT.get(one['reason'], one['reason'])}" for one in causes})


async def refusal_of_new(resource: str, obj: Json) -> StatusError | None:
    """What is said of a new object, if it is refused."""
    backend = await new_backend()
    try:
        await made(backend, resource, obj)
    except StatusError as error:
        return error
    return None


async def refusal_of_change(
    resource: str, obj: Json, changes: Json, subresource: str = ""
) -> StatusError | None:
    """What is said of a change of an object, if it is refused."""
    backend = await new_backend()
    await made(backend, resource, obj)
    try:
        await changed(backend, resource, obj["metadata"]["name"], changes, subresource)
    except StatusError as error:
        return error
    return None


async def made(backend: Backend, resource: str, obj: Json) -> Json:
    """A new object, as it is stored."""
    entry = await writes.create(backend, call_of(backend, resource), copy.deepcopy(obj))
    return entry.object()


async def changed(
    backend: Backend, resource: str, name: str, changes: Json, subresource: str = ""
) -> Json:
    """An object with other values at dotted paths, as it is stored."""
    call = call_of(backend, resource, name, subresource)
    entry = await writes.change(backend, call, lambda obj: with_changes(obj, changes))
    return entry.object()
