"""Object metadata: what the server sets, what it keeps, and validation."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

from bayplan.embedded.apiserver.errors import FieldCause, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode, metadata_of
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest.conformance import nameless
from bayplan.embedded.apiserver.strategies.strategy import RestStrategy
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    immutable,
    required,
)
from bayplan.embedded.apiserver.validation.configuration import plain_finalizer_problems
from bayplan.embedded.apiserver.validation.names import (
    annotation_problems,
    as_prefix,
    label_problems,
    name_problems,
    qualified_name,
)
from bayplan.embedded.apiserver.validation.numbers import repeats

NAME_TRIES = 8
_STANDARD_FINALIZERS_IN = frozenset(
    ("", "apps", "batch", "autoscaling", "storage.k8s.io", "rbac.authorization.k8s.io")
) | {"scheduling.k8s.io", "discovery.k8s.io", "networking.k8s.io"}
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def new_uid(rng: Random) -> str:
    """Return a new UID."""
    return str(UUID(int=rng.getrandbits(128), version=4))


def suffixed(prefix: str, rng: Random) -> str:
    """Return a name made from `generateName`."""
    return prefix[:58] + "".join(rng.choices(_SUFFIX_LETTERS, k=5))


def free_name(prefix: str, rng: Random, is_taken: Callable[[str], bool]) -> str:
    """Return an unused name made from `generateName`, as far as a few tries find one."""
    name = suffixed(prefix, rng)
    for _ in range(NAME_TRIES - 1):
        if not is_taken(name):
            break
        name = suffixed(prefix, rng)
    return name


def address(call: Call, obj: JsonObject, rng: Random, is_taken: Callable[[str], bool]) -> str:
    """Set a new object's namespace and name from URL and body; returns the name."""
    meta = metadata_of(obj)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = free_name(meta["generateName"], rng, is_taken)
    settle_namespace(call, meta)
    if call.name and meta.get("name") not in (None, "", call.name):
        raise _name_mismatch(meta["name"], call.name)
    name: str = meta.get("name") or call.name
    meta["name"] = name
    return name


def settle_namespace(call: Call, meta: JsonObject) -> None:
    """Check that the namespaces of URL and object agree, and set it."""
    given = meta.get("namespace") or ""
    if not call.kind.namespaced:
        meta.pop("namespace", None)
        return
    if given and given != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = call.namespace


def settle_name(call: Call, meta: JsonObject) -> None:
    """Check that the names of URL and object agree, and set it."""
    given = meta.get("name") or ""
    if not given and call.name:
        raise nameless(call)
    if given != call.name:
        raise _name_mismatch(given, call.name)


def _name_mismatch(given: str, wanted: str) -> Exception:
    return bad_request(
        f"the name of the object ({given}) does not match the name on the URL ({wanted})"
    )


def stamp(obj: JsonObject, now: str, uid: str, generations: bool) -> None:
    """Set the fields that the server owns on a new object."""
    meta = obj["metadata"]
    for field in (*_SERVER_OWNED, "selfLink"):
        meta.pop(field, None)
    meta["uid"] = uid
    meta["creationTimestamp"] = now
    if generations:
        meta["generation"] = 1


def keep(new: JsonObject, old: JsonObject, *, owners: bool = True) -> None:
    """Keep the fields that an update may not change; an apply sets its own managed fields."""
    meta, before = new["metadata"], old["metadata"]
    if owners and "managedFields" in before and "managedFields" not in meta:
        meta["managedFields"] = before["managedFields"]
    for field in ("uid", "creationTimestamp", "generation"):
        if field in before:
            meta[field] = before[field]
        else:
            meta.pop(field, None)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in before:
            meta[field] = before[field]
    meta.pop("selfLink", None)


def problems(obj: JsonObject, strategy: RestStrategy) -> list[FieldCause]:
    """Return the problems of an object's metadata."""
    meta = obj["metadata"]
    return [
        *_name_problems(meta, strategy),
        *label_problems(meta.get("labels") or {}, "metadata.labels"),
        *annotation_problems(meta.get("annotations") or {}, "metadata.annotations"),
        *_finalizer_problems(meta),
        *_owner_problems(meta),
        *_standard_finalizer_problems(obj),
    ]


def _name_problems(meta: JsonObject, strategy: RestStrategy) -> list[FieldCause]:
    name, prefix = meta.get("name") or "", meta.get("generateName") or ""
    rule, found = strategy.name_rule, []
    if prefix:
        found = name_problems(as_prefix(rule), prefix, "metadata.generateName")
    if not name:
        return [*found, required("metadata.name", "name or generateName is required")]
    return [*found, *name_problems(rule, name, "metadata.name")]


def _finalizer_problems(meta: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    names = meta.get("finalizers") or ()
    for name in names:
        found += name_problems(qualified_name, name, "metadata.finalizers")
    if "orphan" in names and "foregroundDeletion" in names:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(bad_value("metadata.finalizers", names, detail))
    return found


def _standard_finalizer_problems(obj: JsonObject) -> list[FieldCause]:
    """Return finalizers that are neither Kubernetes' own nor domain-qualified."""
    names = obj["metadata"].get("finalizers") or ()
    group = (obj.get("apiVersion") or "").rpartition("/")[0]
    if not names or group not in _STANDARD_FINALIZERS_IN:
        return []
    return [
        problem
        for index, name in enumerate(names)
        for problem in plain_finalizer_problems(name, f"metadata.finalizers[{index}]")
    ]


def warn_of_finalizers(call: Call, obj: JsonObject) -> None:
    """Warn about finalizers of custom resources without a domain."""
    if call.kind.custom is None:
        return
    for name in obj["metadata"].get("finalizers") or ():
        if "/" not in name and name not in ("orphan", "foregroundDeletion"):
            call.warn(
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name '
                "to avoid accidental conflicts with other finalizer writers"
            )


def _owner_problems(meta: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    controller = ""
    field = "metadata.ownerReferences"
    owners = meta.get("ownerReferences") or ()
    for owner in owners:
        found += _reference_problems(owner, field)
        if not owner.get("controller"):
            continue
        named = f"{owner.get('kind')}/{owner.get('name')}"
        if controller:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references '
                f"for {controller} and {named}"
            )
            found.append(bad_value(field, owners, detail))
        controller = controller or named
    return found


def _reference_problems(owner: JsonObject, field: str) -> list[FieldCause]:
    version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    found = []
    if not version or version.count("/") > 1:
        found.append(bad_value(f"{field}.apiVersion", version, "version must not be empty"))
    found += [
        bad_value(f"{field}.{name}", "", "must not be empty")
        for name in ("kind", "name", "uid")
        if not owner.get(name)
    ]
    if (version, kind) == ("v1", "Event"):
        detail = "/v1, Kind=Event is disallowed from being an owner"
        found.append(bad_value(field, owner, detail))
    return found


def drop_repeated_owners(call: Call, obj: JsonObject) -> None:
    """Remove duplicate owner references, with a warning."""
    owners = obj["metadata"].get("ownerReferences") or []
    if len(owners) < 2:
        return
    written = [encode(dict(sorted(owner.items()))) for owner in owners]
    again = set(repeats(written))
    repeated = [owners[index].get("uid") or "" for index in sorted(again)]
    if repeated:
        kept = [owner for index, owner in enumerate(owners) if index not in again]
        obj["metadata"]["ownerReferences"] = kept
        call.warn(f"{_REPEATED_OWNERS}{', '.join(dict.fromkeys(repeated))}")


_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
    "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
    "UID(s) observed: "
)


def change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of metadata."""
    meta, before = new["metadata"], old["metadata"]
    found = [
        immutable(f"metadata.{field}", meta[field])
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds")
        if meta.get(field) != before.get(field)
    ]
    added = sorted(set(meta.get("finalizers") or ()) - set(before.get("finalizers") or ()))
    if added and before.get("deletionTimestamp"):
        shown = "[]string{" + ", ".join(f'"{name}"' for name in added) + "}"
        detail = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"{shown}"
        )
        found.insert(0, forbidden_field("metadata.finalizers", detail))
    return found
