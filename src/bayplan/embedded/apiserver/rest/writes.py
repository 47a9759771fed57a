"""Creating, changing and applying objects: prepare, admit, validate, store.

A change is computed from the object as it is now and stored only if that is still so; whoever did
not say a resource version is retried on the newer object, whoever did gets a conflict.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from bayplan.embedded.apiserver.errors import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    invalid,
    modified,
    not_found,
)
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode, metadata_of
from bayplan.embedded.apiserver.kinds.catalog import to_kept, to_shown
from bayplan.embedded.apiserver.patch import apply as serverside
from bayplan.embedded.apiserver.patch.managedfields import Manager, shape_of, track
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest import metadata
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend, require_namespace
from bayplan.embedded.apiserver.rest.conformance import check_patched_kind, conform, custom_problems
from bayplan.embedded.apiserver.schema.checking import complete
from bayplan.embedded.apiserver.schema.types import root_type
from bayplan.embedded.apiserver.store.entry import Entry, Key
from bayplan.embedded.apiserver.store.store import StaleWrite
from bayplan.embedded.apiserver.strategies.strategy import Strategy
from bayplan.embedded.apiserver.strategies.table import strategy_for
from bayplan.embedded.apiserver.validation.causes import bad_value, immutable
from bayplan.embedded.apiserver.validation.pods.choices import DISALLOWED

Compute = Callable[[JsonObject], JsonObject]
"""Makes the object that is wanted out of the object that is there (which it may change)."""

_ATTEMPTS = 5
_UNVALIDATED = ("status", "binding", "finalize")
"""Subresources that leave alone what a kind's rules are about, or are the one way around them."""


async def create(backend: Backend, call: Call, obj: JsonObject, *, trusted: bool = False) -> Entry:
    """Store a new object; `trusted` says that its shape needs no check."""
    strategy = strategy_for(call.kind)
    if not trusted:
        conform(call, obj)
    call = _addressed(backend, call, obj)
    require_namespace(backend, call)
    obj = _typed(backend, call, to_kept(call.kind, obj))
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
    refuse(call, obj, _unlawful(backend, found + custom_problems(call, obj)))
    _warn(call, strategy.warnings(obj, None))
    await backend.admission.validate(request)
    require_namespace(backend, call)
    return _store_new(backend, call, obj)


def _addressed(backend: Backend, call: Call, obj: JsonObject) -> Call:
    """The same request, about the object that is being made."""

    def is_taken(name: str) -> bool:
        return backend.store.get(Key(call.kind.storage, call.namespace, name)) is not None

    return replace(call, name=metadata.address(call, obj, backend.rng, is_taken))


def _typed(backend: Backend, call: Call, obj: JsonObject) -> JsonObject:
    """An object that says first of which kind it is, so that lists can leave it out."""
    kept = backend.catalog.stored(call.kind.storage) or call.kind
    named: JsonObject = {"kind": kept.kind, "apiVersion": kept.api_version}
    return named | obj | named


def _prepare_new(backend: Backend, call: Call, obj: JsonObject, strategy: Strategy) -> None:
    uid = metadata.new_uid(backend.rng)
    metadata.stamp(obj, backend.now(), uid, call.kind.generations)
    if call.kind.has_status and not strategy.keeps_status:
        obj.pop("status", None)
        _begin_status(call, obj)
    strategy.prepare_create(obj)


def _begin_status(call: Call, obj: JsonObject) -> None:
    """A built-in object has a status from its first day, if one that says nothing yet."""
    type_ = None if call.kind.custom else root_type(call.kind.group, call.kind.kind)
    if type_ is not None:
        complete(obj, type_)


def _store_new(backend: Backend, call: Call, obj: JsonObject) -> Entry:
    taken = backend.store.get(call.key)
    if taken is not None:
        raise already_exists(call.kind.group, call.kind.plural, call.name, going=taken.deleting)
    if call.dry_run:
        return Entry(call.key, 0, encode(obj), obj, {})
    if obj["metadata"].get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    return backend.store.put(call.key, obj, None)


def _warn(call: Call, warnings: list[str]) -> None:
    for text in warnings:
        call.warn(text)


def _unlawful(backend: Backend, problems: list[Cause]) -> list[Cause]:
    """What is left to refuse where containers may be privileged."""
    if not problems or not backend.allow_privileged:
        return problems
    return [one for one in problems if not one.message.endswith(DISALLOWED)]


def refuse(call: Call, obj: JsonObject, problems: list[Cause]) -> None:
    """Raise what is wrong with an object, if anything is."""
    if problems:
        group, _, _ = (obj.get("apiVersion") or call.kind.api_version).rpartition("/")
        raise invalid(group, call.kind.kind, obj["metadata"].get("name", ""), problems)


async def update(
    backend: Backend, call: Call, obj: JsonObject, *, trusted: bool = False
) -> tuple[Entry, bool]:
    """Replace an object; says whether it was created. `trusted` as with `create`."""
    strategy = strategy_for(call.kind)
    _check_address(call, obj)
    current = backend.store.get(call.key)
    if current is None and strategy.create_on_update and not call.subresource:
        call.may_create()
        metadata_of(obj).pop("resourceVersion", None)
        return await create(backend, call, obj, trusted=trusted), True
    return await change(backend, call, lambda _: clone(obj), trusted=trusted), False


async def change(backend: Backend, call: Call, compute: Compute, *, trusted: bool = False) -> Entry:
    """Compute an object anew from what it is now, and store it.

    `trusted` says that the change is the server's own, whose shape needs no check.
    """
    for _ in range(_ATTEMPTS):
        current = backend.require(call)
        old = current.object()
        wanted = compute(to_shown(call.kind, current.object()))
        if not trusted:
            if call.patching:
                check_patched_kind(call, wanted, backend.catalog)
            conform(call, wanted, known=to_shown(call.kind, old))
        wanted = to_kept(call.kind, wanted)
        _check_preconditions(call, wanted, current)
        try:
            return await _store_change(backend, call, wanted, current, old)
        except StaleWrite:
            continue
    raise modified(call.kind.group, call.kind.plural, call.name)


def _check_preconditions(call: Call, wanted: JsonObject, current: Entry) -> None:
    _check_address(call, wanted)
    meta, kind = wanted["metadata"], call.kind
    if meta.get("uid") not in (None, "", current.uid) and not call.patching:
        raise conflict(kind.group, kind.plural, call.name, _stored_other(meta["uid"], current))
    _check_version(call, str(meta.get("resourceVersion") or ""), current)
    if meta.get("uid") not in (None, "", current.uid):
        raise invalid(kind.group, kind.kind, call.name, [immutable("metadata.uid", meta["uid"])])


def _check_version(call: Call, version: str, current: Entry) -> None:
    """A change is made to the version that it names; some kinds take no change without one."""
    kind = call.kind
    if not version.isdigit() and version:
        raise ApiError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if not version or not int(version):
        if kind.conditional:
            field, why = "metadata.resourceVersion", "must be specified for an update"
            raise invalid(kind.group, kind.plural, call.name, [bad_value(field, 0, why)])
    elif version != str(current.revision):
        raise modified(kind.group, kind.plural, call.name)


def _check_address(call: Call, obj: JsonObject) -> None:
    """Nobody, not even a webhook, makes a request be about another object."""
    meta = metadata_of(obj)
    metadata.settle_namespace(call, meta)
    metadata.settle_name(call, meta)


def other_uid(wanted: str, found: str) -> str:
    """The name is the same, but the object is another one."""
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"


def _stored_other(wanted: str, found: Entry) -> str:
    key = "/".join(("", "registry", *filter(None, found.key)))
    told = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0"
    return f"{told}, AdditionalErrorMsg: {other_uid(wanted, found.uid)}"


async def _store_change(
    backend: Backend, call: Call, wanted: JsonObject, current: Entry, old: JsonObject
) -> Entry:
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
    refuse(call, new, _unlawful(backend, _change_problems(call, new, old, strategy)))
    if call.subresource not in _UNVALIDATED:
        _warn(call, strategy.warnings(new, old))
    if not admitted:
        await backend.admission.validate(request)
    if backend.store.get(call.key) is not current:
        raise StaleWrite(call.key)
    return _commit_change(backend, call, new, old, current)


def _track_owners(backend: Backend, call: Call, new: JsonObject, old: JsonObject) -> None:
    """Keep `managedFields` true on objects that have been applied."""
    if call.applied or not old["metadata"].get("managedFields"):
        return
    manager = Manager(
        call.field_manager or call.client, "Update", call.kind.api_version, call.subresource
    )
    track(new, old, shape_of(call.kind), manager, backend.now())


def _merge_scope(call: Call, wanted: JsonObject, old: JsonObject) -> JsonObject:
    """Status is written through its subresource only, and nothing else is."""
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
    call: Call, new: JsonObject, old: JsonObject, strategy: Strategy, now: Callable[[], str]
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
    call: Call, new: JsonObject, old: JsonObject, strategy: Strategy
) -> list[Cause]:
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
    backend: Backend, call: Call, new: JsonObject, old: JsonObject, current: Entry
) -> Entry:
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if new == old:
        return current
    if call.dry_run:
        return Entry(call.key, current.revision, encode(new), new, {})
    if finished(new):
        return backend.store.remove(call.key, new, current)
    return backend.store.put(call.key, new, current)


def finished(obj: JsonObject) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    meta = obj["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


async def apply(backend: Backend, call: Call, wanted: JsonValue) -> tuple[Entry, bool]:
    """Apply what a manager wants; says whether the object was created."""
    checked = _check(call, wanted)
    call = replace(call, applied=True)
    if backend.store.get(call.key) is None:
        return await _create(backend, call, checked), True
    intent = _intent(backend, call, checked)

    def merge(live: JsonObject) -> JsonObject:
        return serverside.apply(live, intent)

    return await change(backend, call, merge), False


async def _create(backend: Backend, call: Call, wanted: JsonObject) -> Entry:
    if call.subresource:
        raise not_found(call.kind.group, call.kind.plural, call.name)
    metadata.settle_name(call, wanted["metadata"])
    call.may_create()
    obj = serverside.first_apply(_intent(backend, call, wanted))
    return await create(backend, call, obj)


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
    found = serverside.problems(wanted, kind)
    if found:
        said = meta if isinstance(meta, dict) else {}
        where = f"{said.get('namespace') or ''}/{said.get('name') or ''}"
        what = f"({where}; {_spelled(api_version)}, Kind={named})"
        told = f"failed to create typed patch object {what}: {serverside.told(found)}"
        raise ApiError(500, "", told)
    conform(call, wanted, whole=False)
    metadata.settle_namespace(call, meta)
    if meta.get("name"):
        metadata.settle_name(call, meta)
    return wanted


def _spelled(api_version: str) -> str:
    """A version with its group, which is empty for the oldest kinds."""
    return api_version if "/" in api_version else f"/{api_version}"
