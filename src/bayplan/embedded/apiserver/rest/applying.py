"""Server-side apply as a request: create what is not there, else merge into what is."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.embedded.apiserver.errors import ApiError, bad_request, not_found
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.patch import apply as serverside
from bayplan.embedded.apiserver.patch import typed
from bayplan.embedded.apiserver.patch.managed import Manager
from bayplan.embedded.apiserver.patch.shapes import shape_of
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest import metadata, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.conforming import conform
from bayplan.embedded.apiserver.store.entry import Entry


async def apply(backend: Backend, call: Call, wanted: JsonValue) -> tuple[Entry, bool]:
    """Apply what a manager wants; says whether the object was created."""
    checked = _check(call, wanted)
    call = replace(call, applied=True)
    if backend.store.get(call.key) is None:
        return await _create(backend, call, checked), True
    intent = _intent(backend, call, checked)

    def merge(live: JsonObject) -> JsonObject:
        return serverside.apply(live, intent)

    return await writing.change(backend, call, merge), False


async def _create(backend: Backend, call: Call, wanted: JsonObject) -> Entry:
    if call.subresource:
        raise not_found(call.kind.group, call.kind.plural, call.name)
    metadata.settle_name(call, wanted["metadata"])
    call.may_create()
    obj = serverside.first_apply(_intent(backend, call, wanted))
    return await writing.create(backend, call, obj)


def _intent(backend: Backend, call: Call, wanted: JsonObject) -> serverside.Intent:
    manager = Manager(call.field_manager, "Apply", call.kind.api_version, call.subresource)
    return serverside.Intent(wanted, shape_of(call.kind), manager, backend.now(), call.force)


def _check(call: Call, wanted: JsonValue) -> JsonObject:
    kind = call.kind
    if not isinstance(wanted, dict):
        raise bad_request("an apply's body must be an object")
    if wanted.get("metadata") is None:
        wanted["metadata"] = {}
    meta = wanted["metadata"]
    if isinstance(meta, dict) and meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    named, api_version = wanted.get("kind") or "", str(wanted.get("apiVersion") or "")
    if (named, api_version) != (kind.kind, kind.api_version):
        raise bad_request(f"invalid object type: {_spelled(api_version)}, Kind={named}")
    found = typed.problems(wanted, kind)
    if found:
        said = meta if isinstance(meta, dict) else {}
        where = f"{said.get('namespace') or ''}/{said.get('name') or ''}"
        what = f"({where}; {_spelled(api_version)}, Kind={named})"
        told = f"failed to create typed patch object {what}: {typed.told(found)}"
        raise ApiError(500, "", told)
    conform(call, wanted, whole=False)
    metadata.settle_namespace(call, meta)
    if meta.get("name"):
        metadata.settle_name(call, meta)
    return wanted


def _spelled(api_version: str) -> str:
    """A version with its group, which is empty for the oldest kinds."""
    return api_version if "/" in api_version else f"/{api_version}"
