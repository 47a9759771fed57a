"""Deletion: at once, after a grace period, or once the finalizers are gone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import conflict, modified
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode
from bayplan.embedded.apiserver.request import Call, DeletionOptions
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.writes import is_finished
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.store.store import StaleWrite
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.kube.times import read_time, timestamp

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_ATTEMPTS = 5
_MAX_GRACE = 2**31


class DeleteResult(NamedTuple):
    """The result of a delete: the object's last state, and whether it is gone."""

    entry: StoreEntry
    gone: bool


async def delete(backend: Backend, call: Call, options: DeletionOptions) -> DeleteResult:
    """Delete an object, or mark it for deletion."""
    for _ in range(_ATTEMPTS):
        current = backend.require(call)
        _check_preconditions(backend, call, options, current)
        request = AdmissionRequest("DELETE", call, None, current.object())
        await backend.admission.mutate(request)
        await backend.admission.validate(request)
        try:
            return _delete(backend, call, options, current)
        except StaleWrite:
            continue
    raise modified(call.kind.group, call.kind.plural, call.name)


def _check_preconditions(
    backend: Backend, call: Call, options: DeletionOptions, current: StoreEntry
) -> None:
    kind = backend.catalog.stored(call.kind.storage) or call.kind
    if options.uid and options.uid != current.uid:
        detail = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({current.uid}). The object might have been deleted and then recreated"
        )
        raise conflict(kind.group, kind.kind, call.name, detail)
    if options.resource_version and options.resource_version != str(current.revision):
        detail = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({current.revision}). "
            "The object might have been modified"
        )
        raise conflict(kind.group, kind.kind, call.name, detail)


def _delete(
    backend: Backend, call: Call, options: DeletionOptions, current: StoreEntry
) -> DeleteResult:
    obj = current.object()
    policy = _propagation_policy(call, obj, options)
    changed = _mark(backend, call, obj, options)
    if changed:  # of a terminating object, only the time can be changed
        _propagate(obj, policy)
    if is_finished(obj) and not current.is_terminating and call.kind.storage != "pods":
        obj = current.object()  # it is never visible as terminating
    elif call.dry_run:
        return DeleteResult(
            StoreEntry(call.key, current.revision, encode(obj), obj, {}), is_finished(obj)
        )
    if call.dry_run:
        return DeleteResult(current, gone=True)
    if is_finished(obj) or (
        not current.is_terminating and "deletionTimestamp" not in obj["metadata"]
    ):
        return DeleteResult(backend.store.remove(call.key, obj, current), gone=True)
    if not changed:
        return DeleteResult(current, gone=False)
    return DeleteResult(backend.store.put(call.key, obj, current), gone=False)


def _propagation_policy(call: Call, obj: JsonObject, options: DeletionOptions) -> str:
    """Return the propagation policy; "" if neither client nor kind has one."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if options.propagation or ORPHAN in finalizers or FOREGROUND in finalizers:
        return options.propagation
    return "Orphan" if strategy_of(call.kind.storage).orphans else ""


def _propagate(obj: JsonObject, policy: str) -> None:
    """Set the finalizer of the propagation policy."""
    if not policy:
        return
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(policy)
    meta = obj["metadata"]
    after = [name for name in meta.get("finalizers") or () if name not in (ORPHAN, FOREGROUND)]
    meta["finalizers"] = after if wanted is None else [*after, wanted]
    if not meta["finalizers"]:
        del meta["finalizers"]


def _mark(backend: Backend, call: Call, obj: JsonObject, options: DeletionOptions) -> bool:
    """Set (or shorten) the deletion time; returns whether anything changed."""
    meta = obj["metadata"]
    if "deletionTimestamp" in meta:
        return _shorten(meta, options, backend.clock.now())
    grace = _grace(call, obj, options)
    strategy_of(call.kind.storage).prepare_delete(obj, backend.now())
    due = backend.clock.now() + timedelta(seconds=grace)
    meta["deletionTimestamp"] = timestamp(due)
    if call.kind.storage != "namespaces":
        meta["deletionGracePeriodSeconds"] = grace
    if call.kind.generations or "generation" in meta:
        meta["generation"] = (meta.get("generation") or 0) + 1
    if call.kind.storage == "namespaces":
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return True


def _shorten(meta: JsonObject, options: DeletionOptions, now: datetime) -> bool:
    """Shorten the grace period of a terminating object; it cannot be extended."""
    before, after = meta.get("deletionGracePeriodSeconds") or 0, _bounded(options.grace_seconds)
    if after is None or after >= before:
        return False
    due = (read_time(meta["deletionTimestamp"]) or now) - timedelta(seconds=before - after)
    meta["deletionTimestamp"] = timestamp(due)
    meta["deletionGracePeriodSeconds"] = after
    return True


def _bounded(grace: int | None) -> int | None:
    """Return at least one second, as Kubernetes does."""
    return grace if grace is None else 1 if grace < 0 else min(grace, _MAX_GRACE)


def _grace(call: Call, obj: JsonObject, options: DeletionOptions) -> int:
    """Return the grace period; only bound pods have one."""
    if call.kind.storage != "pods":
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    wanted = options.grace_seconds
    if wanted is None:
        wanted = spec.get("terminationGracePeriodSeconds", 30)
    return _bounded(wanted) or 0
