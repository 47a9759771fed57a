"""Create, update, patch and apply: prepare, admit, validate, store.

A change is computed from the current object and stored only if the object is still the same. A
request without a resource version is then retried on the newer object; one with it gets a conflict.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from bayplan.embedded.apiserver.errors import (
    FieldCause,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    modified,
    not_found,
)
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode, metadata_of
from bayplan.embedded.apiserver.kinds.catalog import to_served, to_stored
from bayplan.embedded.apiserver.patch import apply as serverside
from bayplan.embedded.apiserver.patch.managedfields import FieldManager, track_update, value_type_of
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest import metadata
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend, require_namespace
from bayplan.embedded.apiserver.rest.conformance import check_patched_kind, conform, custom_problems
from bayplan.embedded.apiserver.schema.typecheck import complete
from bayplan.embedded.apiserver.schema.types import root_type
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.store import StaleWrite
from bayplan.embedded.apiserver.strategies.strategy import RestStrategy
from bayplan.embedded.apiserver.strategies.table import strategy_for
from bayplan.embedded.apiserver.validation.causes import bad_value, immutable
from bayplan.embedded.apiserver.validation.pods.choices import DISALLOWED

Compute = Callable[[JsonObject], JsonObject]
"""Returns the wanted object given the current one (which it may change)."""

_ATTEMPTS = 5
_UNVALIDATED = ("status", "binding", "finalize")
"""Subresources that skip validation by the kind's strategy."""


async def create(
    backend: Backend, call: Call, obj: JsonObject, *, trusted: bool = False
) -> StoreEntry:
    """Store a new object; `trusted` skips schema validation."""
    strategy = strategy_for(call.kind)
    if not trusted:
        conform(call, obj)
    call = _addressed(backend, call, obj)
    require_namespace(backend, call)
    obj = _typed(backend, call, to_stored(call.kind, obj))
    strategy.default(obj)
    request = AdmissionRequest("CREATE", call, obj)
    await backend.admission.mutate(request)
    obj = request.object or obj
    metadata.drop_repeated_owners(call, obj)
    metadata.warn_of_finalizers(call, obj)
    _check_address(call, obj)
    _prepare_new(backend, call, obj, strategy)
    found = [*strategy.validate(obj), *strategy.validate_new(obj)]
    if not (found and strategy.metadata_last):
        found = metadata.problems(obj, strategy) + found
    refuse(call, obj, _refusable(backend, found + custom_problems(call, obj)))
    _warn(call, strategy.warnings(obj, None))
    await backend.admission.validate(request)
    require_namespace(backend, call)
    return _store_new(backend, call, obj)


def _addressed(backend: Backend, call: Call, obj: JsonObject) -> Call:
    """Return the same call, with the name of the new object."""

    def is_taken(name: str) -> bool:
        return backend.store.get(ObjectKey(call.kind.storage, call.namespace, name)) is not None

    return replace(call, name=metadata.address(call, obj, backend.rng, is_taken))


def _typed(backend: Backend, call: Call, obj: JsonObject) -> JsonObject:
    """Return an object with apiVersion and kind first, so that lists can omit them."""
    kept = backend.catalog.stored(call.kind.storage) or call.kind
    named: JsonObject = {"kind": kept.kind, "apiVersion": kept.api_version}
    return named | obj | named


def _prepare_new(backend: Backend, call: Call, obj: JsonObject, strategy: RestStrategy) -> None:
    uid = metadata.new_uid(backend.rng)
    metadata.stamp(obj, backend.now(), uid, call.kind.generations)
    if call.kind.has_status and not strategy.keeps_status:
        obj.pop("status", None)
        _begin_status(call, obj)
    strategy.prepare_create(obj)


def _begin_status(call: Call, obj: JsonObject) -> None:
    """Give a new built-in object an empty status."""
    type_ = None if call.kind.custom else root_type(call.kind.group, call.kind.kind)
    if type_ is not None:
        complete(obj, type_)


def _store_new(backend: Backend, call: Call, obj: JsonObject) -> StoreEntry:
    taken = backend.store.get(call.key)
    if taken is not None:
        raise already_exists(
            call.kind.group, call.kind.plural, call.name, going=taken.is_terminating
        )
    if call.dry_run:
        return StoreEntry(call.key, 0, encode(obj), obj, {})
    if obj["metadata"].get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    return backend.store.put(call.key, obj, None)


def _warn(call: Call, warnings: list[str]) -> None:
    for text in warnings:
        call.warn(text)


def _refusable(backend: Backend, problems: list[FieldCause]) -> list[FieldCause]:
    """Return the problems, without those about privileged containers if they are allowed."""
    if not problems or not backend.allow_privileged:
        return problems
    return [one for one in problems if not one.message.endswith(DISALLOWED)]


def refuse(call: Call, obj: JsonObject, problems: list[FieldCause]) -> None:
    """Raise 422 if there are problems."""
    if problems:
        group, _, _ = (obj.get("apiVersion") or call.kind.api_version).rpartition("/")
        raise invalid(group, call.kind.kind, obj["metadata"].get("name", ""), problems)


async def update(
    backend: Backend, call: Call, obj: JsonObject, *, trusted: bool = False
) -> tuple[StoreEntry, bool]:
    """Replace an object; returns whether it was created. `trusted` skips schema validation."""
    strategy = strategy_for(call.kind)
    _check_address(call, obj)
    current = backend.store.get(call.key)
    if current is None and strategy.create_on_update and not call.subresource:
        call.may_create()
        metadata_of(obj).pop("resourceVersion", None)
        return await create(backend, call, obj, trusted=trusted), True
    return await change(backend, call, lambda _: clone(obj), trusted=trusted), False


async def change(
    backend: Backend, call: Call, compute: Compute, *, trusted: bool = False
) -> StoreEntry:
    """Compute an object from its current state, and store it.

    `trusted` is for changes of the server itself, and skips schema validation.
    """
    for _ in range(_ATTEMPTS):
        current = backend.require(call)
        old = current.object()
        wanted = compute(to_served(call.kind, current.object()))
        if not trusted:
            if call.patching:
                check_patched_kind(call, wanted, backend.catalog)
            conform(call, wanted, known=to_served(call.kind, old))
        wanted = to_stored(call.kind, wanted)
        _check_preconditions(call, wanted, current)
        try:
            return await _store_change(backend, call, wanted, current, old)
        except StaleWrite:
            continue
    raise modified(call.kind.group, call.kind.plural, call.name)


def _check_preconditions(call: Call, wanted: JsonObject, current: StoreEntry) -> None:
    _check_address(call, wanted)
    meta, kind = wanted["metadata"], call.kind
    if meta.get("uid") not in (None, "", current.uid) and not call.patching:
        raise conflict(kind.group, kind.plural, call.name, _stored_other(meta["uid"], current))
    _check_version(call, str(meta.get("resourceVersion") or ""), current)
    if meta.get("uid") not in (None, "", current.uid):
        raise invalid(kind.group, kind.kind, call.name, [immutable("metadata.uid", meta["uid"])])


def _check_version(call: Call, version: str, current: StoreEntry) -> None:
    """Check the resource version of an update; some kinds require one."""
    kind = call.kind
    if not version.isdigit() and version:
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if not version or not int(version):
        if kind.conditional:
            field, detail = "metadata.resourceVersion", "must be specified for an update"
            raise invalid(kind.group, kind.plural, call.name, [bad_value(field, 0, detail)])
    elif version != str(current.revision):
        raise modified(kind.group, kind.plural, call.name)


def _check_address(call: Call, obj: JsonObject) -> None:
    """Check that admission did not change the object's name or namespace."""
    meta = metadata_of(obj)
    metadata.settle_namespace(call, meta)
    metadata.settle_name(call, meta)


def other_uid(wanted: str, found: str) -> str:
    """Return the message for a UID precondition that failed."""
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"


def _stored_other(wanted: str, found: StoreEntry) -> str:
    key = "/".join(("", "registry", *filter(None, found.key)))
    message = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0"
    return f"{message}, AdditionalErrorMsg: {other_uid(wanted, found.uid)}"


async def _store_change(
    backend: Backend, call: Call, wanted: JsonObject, current: StoreEntry, old: JsonObject
) -> StoreEntry:
    strategy = strategy_for(call.kind)
    if call.subresource in strategy.parts:
        wanted = strategy.parts[call.subresource].merge(wanted, old)
    new = _typed(backend, call, _merge_scope(call, wanted, old))
    if call.subresource not in _UNVALIDATED:
        strategy.default(new)
    request = AdmissionRequest("UPDATE", call, new, old)
    admitted = call.subresource == "binding"
    if not admitted:
        await backend.admission.mutate(request)
    new = request.object or new
    metadata.drop_repeated_owners(call, new)
    metadata.warn_of_finalizers(call, new)
    _check_address(call, new)
    _prepare_change(call, new, old, strategy, backend.now)
    _track_owners(backend, call, new, old)
    refuse(call, new, _refusable(backend, _change_problems(call, new, old, strategy)))
    if call.subresource not in _UNVALIDATED:
        _warn(call, strategy.warnings(new, old))
    if not admitted:
        await backend.admission.validate(request)
    if backend.store.get(call.key) is not current:
        raise StaleWrite(call.key)
    return _commit_change(backend, call, new, old, current)


def _track_owners(backend: Backend, call: Call, new: JsonObject, old: JsonObject) -> None:
    """Update the `managedFields` of objects that have been applied before."""
    if call.applied or not old["metadata"].get("managedFields"):
        return
    manager = FieldManager(
        call.field_manager or call.client, "Update", call.kind.api_version, call.subresource
    )
    track_update(new, old, value_type_of(call.kind), manager, backend.now())


def _merge_scope(call: Call, wanted: JsonObject, old: JsonObject) -> JsonObject:
    """Limit a write to the status, or to everything but the status."""
    if call.subresource == "status":
        merged = {**old, "metadata": wanted["metadata"]}
        merged["metadata"]["ownerReferences"] = old["metadata"].get("ownerReferences")
        wanted = _with(merged, "status", wanted.get("status"))
    elif call.kind.has_status and call.subresource != "binding":
        wanted = _with(wanted, "status", old.get("status"))
    if wanted["metadata"].get("ownerReferences", ()) is None:
        del wanted["metadata"]["ownerReferences"]
    return wanted


def _with(obj: JsonObject, field: str, value: object) -> JsonObject:
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = value
    return obj


def _prepare_change(
    call: Call, new: JsonObject, old: JsonObject, strategy: RestStrategy, now: Callable[[], str]
) -> None:
    metadata.keep(new, old, owners=not call.applied)
    if call.subresource == "status":
        strategy.prepare_status(new, old, now)
    if call.subresource != "finalize":
        strategy.prepare_update(new, old)
    if call.kind.generations and call.subresource not in _UNVALIDATED:
        ignored = ("metadata", "status") if call.kind.has_status else ("metadata",)
        if any(new.get(f) != old.get(f) for f in {*new, *old} if f not in ignored):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def _change_problems(
    call: Call, new: JsonObject, old: JsonObject, strategy: RestStrategy
) -> list[FieldCause]:
    found = metadata.change_problems(new, old)
    if new["metadata"] != old["metadata"]:
        found += metadata.problems(new, strategy)
    if call.subresource == "status":
        found += strategy.validate_status(new, old)
    elif call.subresource in strategy.parts:
        found += strategy.parts[call.subresource].validate(new, old)
    elif call.subresource not in _UNVALIDATED:
        found += [*strategy.validate(new), *strategy.validate_update(new, old)]
    return found + custom_problems(call, new)


def _commit_change(
    backend: Backend, call: Call, new: JsonObject, old: JsonObject, current: StoreEntry
) -> StoreEntry:
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if new == old:
        return current
    if call.dry_run:
        return StoreEntry(call.key, current.revision, encode(new), new, {})
    if is_finished(new):
        return backend.store.remove(call.key, new, current)
    return backend.store.put(call.key, new, current)


def is_finished(obj: JsonObject) -> bool:
    """Return whether a terminating object can be removed."""
    meta = obj["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


async def apply(backend: Backend, call: Call, wanted: JsonValue) -> tuple[StoreEntry, bool]:
    """Apply a configuration; returns whether the object was created."""
    checked = _check(call, wanted)
    call = replace(call, applied=True)
    if backend.store.get(call.key) is None:
        return await _create(backend, call, checked), True
    intent = _intent(backend, call, checked)

    def merge(live: JsonObject) -> JsonObject:
        return serverside.apply(live, intent)

    return await change(backend, call, merge), False


async def _create(backend: Backend, call: Call, wanted: JsonObject) -> StoreEntry:
    if call.subresource:
        raise not_found(call.kind.group, call.kind.plural, call.name)
    metadata.settle_name(call, wanted["metadata"])
    call.may_create()
    obj = serverside.first_apply(_intent(backend, call, wanted))
    return await create(backend, call, obj)


def _intent(backend: Backend, call: Call, wanted: JsonObject) -> serverside.ApplyIntent:
    manager = FieldManager(call.field_manager, "Apply", call.kind.api_version, call.subresource)
    return serverside.ApplyIntent(
        wanted, value_type_of(call.kind), manager, backend.now(), call.force
    )


def _check(call: Call, wanted: JsonValue) -> JsonObject:
    kind = call.kind
    if not isinstance(wanted, dict):
        raise bad_request("the body of an apply must be an object")
    if wanted.get("metadata") is None:
        wanted["metadata"] = {}
    meta = wanted["metadata"]
    if isinstance(meta, dict) and meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    named, api_version = wanted.get("kind") or "", str(wanted.get("apiVersion") or "")
    if (named, api_version) != (kind.kind, kind.api_version):
        raise bad_request(f"invalid object type: {_spelled(api_version)}, Kind={named}")
    found = serverside.problems(wanted, kind)
    if found:
        named_meta = meta if isinstance(meta, dict) else {}
        where = f"{named_meta.get('namespace') or ''}/{named_meta.get('name') or ''}"
        what = f"({where}; {_spelled(api_version)}, Kind={named})"
        message = f"failed to create typed patch object {what}: {serverside.joined(found)}"
        raise StatusError(500, "", message)
    conform(call, wanted, whole=False)
    metadata.settle_namespace(call, meta)
    if meta.get("name"):
        metadata.settle_name(call, meta)
    return wanted


def _spelled(api_version: str) -> str:
    """Return group and version, with an empty group for the core group."""
    return api_version if "/" in api_version else f"/{api_version}"
