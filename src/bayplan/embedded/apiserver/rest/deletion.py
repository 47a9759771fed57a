"""Deletion: at once, after a grace period, or once the finalizers are gone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import conflict, modified
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode
from bayplan.embedded.apiserver.request import Call, DeleteOptions
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.writes import finished
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.store.store import StaleWrite
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.kube.times import read_time, timestamp

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_ATTEMPTS = 5
_MOST_GRACE = 2**31


class Deleted(NamedTuple):
    """What a delete did: the object's last known state, and whether it is gone."""

    entry: Entry
    gone: bool


async def delete(backend: Backend, call: Call, options: DeleteOptions) -> Deleted:
    """Delete an object, or mark it so."""
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
    backend: Backend, call: Call, options: DeleteOptions, current: Entry
) -> None:
    kind = backend.catalog.stored(call.kind.storage) or call.kind
    if options.uid and options.uid != current.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({current.uid}). The object might have been deleted and then recreated"
        )
        raise conflict(kind.group, kind.kind, call.name, why)
    if options.resource_version and options.resource_version != str(current.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({current.revision}). "
            "The object might have been modified"
        )
        raise conflict(kind.group, kind.kind, call.name, why)


def _delete(backend: Backend, call: Call, options: DeleteOptions, current: Entry) -> Deleted:
    obj = current.object()
    wish = _wish(call, obj, options)
    changed = _mark(backend, call, obj, options)
    if changed:  # of what is going already, only the time can be changed
        _propagate(obj, wish)
    if finished(obj) and not current.deleting and call.kind.storage != "pods":
        obj = current.object()  # nobody ever sees it going
    elif call.dry_run:
        return Deleted(Entry(call.key, current.revision, encode(obj), obj, {}), finished(obj))
    if call.dry_run:
        return Deleted(current, gone=True)
    if finished(obj) or (not current.deleting and "deletionTimestamp" not in obj["metadata"]):
        return Deleted(backend.store.remove(call.key, obj, current), gone=True)
    if not changed:
        return Deleted(current, gone=False)
    return Deleted(backend.store.put(call.key, obj, current), gone=False)


def _wish(call: Call, obj: JsonObject, options: DeleteOptions) -> str:
    """What is to become of dependents; nothing new, where neither client nor kind says."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if options.propagation or ORPHAN in finalizers or FOREGROUND in finalizers:
        return options.propagation
    return "Orphan" if strategy_of(call.kind.storage).orphans else ""


def _propagate(obj: JsonObject, wish: str) -> None:
    """Let the wanted treatment of dependents stand as a finalizer."""
    if not wish:
        return
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(wish)
    meta = obj["metadata"]
    after = [name for name in meta.get("finalizers") or () if name not in (ORPHAN, FOREGROUND)]
    meta["finalizers"] = after if wanted is None else [*after, wanted]
    if not meta["finalizers"]:
        del meta["finalizers"]


def _mark(backend: Backend, call: Call, obj: JsonObject, options: DeleteOptions) -> bool:
    """Set (or shorten) the deletion time; says whether anything changed."""
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


def _shorten(meta: JsonObject, options: DeleteOptions, now: datetime) -> bool:
    """Who is going can only be told to go sooner."""
    before, after = meta.get("deletionGracePeriodSeconds") or 0, _bounded(options.grace_seconds)
    if after is None or after >= before:
        return False
    due = (read_time(meta["deletionTimestamp"]) or now) - timedelta(seconds=before - after)
    meta["deletionTimestamp"] = timestamp(due)
    meta["deletionGracePeriodSeconds"] = after
    return True


def _bounded(grace: int | None) -> int | None:
    """Less than no time is a second, as everywhere in Kubernetes."""
    return grace if grace is None else 1 if grace < 0 else min(grace, _MOST_GRACE)


def _grace(call: Call, obj: JsonObject, options: DeleteOptions) -> int:
    """Only pods that a node runs get time to end."""
    if call.kind.storage != "pods":
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    wanted = options.grace_seconds
    if wanted is None:
        wanted = spec.get("terminationGracePeriodSeconds", 30)
    return _bounded(wanted) or 0
