"""Resizing a pod where it runs, and adding containers to look into it: what of it may change."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.schema.internal import difference
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, quoted
from bayplan.embedded.apiserver.validation.pods.annotations import MIRROR
from bayplan.embedded.apiserver.validation.pods.equality import same_spec
from bayplan.embedded.apiserver.validation.pods.totals import qos_class

_RESIZED = ("cpu", "memory")
_KINDS = ("requests", "limits")
_ONLY = "only cpu and memory resources are mutable"
_NOWHERE = "[]"
"""How kube-apiserver spells the place of what is wrong with the whole pod."""


def is_static(pod: JsonObject) -> bool:
    """Whether a pod only mirrors one of its node's own."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def resized(wanted: JsonObject, old: JsonObject) -> JsonObject:
    """The pod with nothing changed but resources, and how they may change."""
    spec, before = wanted.get("spec") or {}, old["spec"]
    lists = ("containers", "initContainers")
    if any(len(spec.get(name) or ()) != len(before.get(name) or ()) for name in lists):
        return {**wanted, "status": old.get("status") or {}}
    kept = clone(before)
    for name in lists:
        if kept.get(name):
            kept[name] = _resized_containers(spec[name], kept[name])
    _take(kept, spec, "resources")
    return {**old, "metadata": _kept_metadata(wanted, old), "spec": kept}


def _resized_containers(wanted: list[JsonObject], old: list[JsonObject]) -> list[JsonObject]:
    if any(one.get("name") != two.get("name") for one, two in zip(wanted, old, strict=True)):
        return wanted
    for container, source in zip(old, wanted, strict=True):
        _take(container, source, "resources")
        _take(container, source, "resizePolicy")
    return old


def _take(to: JsonObject, source: JsonObject, name: str) -> None:
    to.pop(name, None)
    if source.get(name) is not None:
        to[name] = source[name]


def _kept_metadata(wanted: JsonObject, old: JsonObject) -> JsonObject:
    return {**old["metadata"], "resourceVersion": wanted["metadata"].get("resourceVersion")}


def with_ephemeral(wanted: JsonObject, old: JsonObject) -> JsonObject:
    """The pod with nothing changed but the containers to look into it."""
    spec = dict(old["spec"])
    _take(spec, wanted.get("spec") or {}, "ephemeralContainers")
    return {**old, "metadata": _kept_metadata(wanted, old), "spec": spec}


def ephemeral_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """A container to look into a pod can be added, and stays as it is."""
    field = "spec.ephemeralContainers"
    after = {one.get("name"): one for one in new["spec"].get("ephemeralContainers") or ()}
    found = []
    for one in old["spec"].get("ephemeralContainers") or ():
        name = f"existing ephemeral containers {quoted(one.get('name') or '')} may not be"
        now = after.get(one.get("name"))
        if now is None:
            found.append(forbidden_field(field, f"{name} removed\n"))
        elif not same_spec(now, one):
            shown = difference(one, now, "core.EphemeralContainer")
            found.append(forbidden_field(field, f"{name} changed\n{shown}"))
    return found


def static_pod_problem(what: str) -> list[Cause]:
    """Nothing of this is possible for a pod that its node made."""
    return [forbidden_field(_NOWHERE, f"static pods {what}")]


def resize_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What of a resize is not allowed."""
    after, before = new["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden_field(_NOWHERE, "windows pods cannot be resized")]
    found: list[Cause] = []
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(before)) != qos_class(after):
        why = "Pod QOS Class may not change as a result of resizing"
        found.append(bad_value("spec", (new.get("status") or {}).get("qosClass") or "", why))
    if not _is_supported(status):
        found.append(forbidden_field("spec", "Pod running on node without support for resize"))
    found += _whole_problems(after.get("resources"), before.get("resources"))
    misplaced = [*_order_problems(after, before, "containers")]
    misplaced += _order_problems(after, before, "initContainers")
    return found + (misplaced or _container_problems(after, before))


def _is_supported(status: JsonObject) -> bool:
    """A node that can resize tells what its running containers have."""
    for one in status.get("containerStatuses") or ():
        if (one.get("state") or {}).get("running") is not None:
            return one.get("resources") is not None
    return True


def _order_problems(after: JsonObject, before: JsonObject, kind: str) -> list[Cause]:
    new, old = after.get(kind) or [], before.get(kind) or []
    if len(new) != len(old):
        return [forbidden_field(f"spec.{kind}", f"{kind} may not be added or removed on resize")]
    why = f"{kind} may not be renamed or reordered on resize"
    return [
        forbidden_field(f"spec.{kind}[{index}].name", why)
        for index, pair in enumerate(zip(new, old, strict=True))
        if pair[0].get("name") != pair[1].get("name")
    ]


def _container_problems(after: JsonObject, before: JsonObject) -> list[Cause]:
    removed: list[Cause] = []
    changed: list[Cause] = []
    for kind in ("initContainers", "containers"):
        for index, old in enumerate(before.get(kind) or ()):
            new, at = after[kind][index], f"spec.{kind}[{index}]"
            removed += _removed_problems(new, old, f"{at}.resources", "resource")
            if not same_spec(_unsized(new, old), old):
                changed.append(_changed_problem(kind, at))
            elif kind == "initContainers" and not same_spec(new, old):
                changed += _restart_problems(new, at)
    return removed + changed


def _changed_problem(kind: str, at: str) -> Cause:
    if kind == "containers":
        return forbidden_field("spec", _ONLY)
    why = "only cpu and memory resources for init or sidecar containers are mutable"
    return forbidden_field(at, why)


def _restart_problems(container: JsonObject, at: str) -> list[Cause]:
    if container.get("restartPolicy") == "Always":
        return []
    why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    return [
        forbidden_field(at, why)
        for one in container.get("resizePolicy") or ()
        if one.get("restartPolicy") == "RestartContainer"
    ]


def _removed_problems(new: JsonObject, old: JsonObject, at: str, what: str) -> list[Cause]:
    after, before = new.get("resources") or {}, old.get("resources") or {}
    return [
        forbidden_field(f"{at}.{kind}", f"{what} {kind} cannot be removed")
        for kind in _KINDS
        if (before.get(kind) or {}).keys() - (after.get(kind) or {}).keys()
    ]


def _unsized(new: JsonObject, old: JsonObject) -> JsonObject:
    """A container with as much processor and memory as it had, and nothing else changed back."""
    after, before = new.get("resources") or {}, old.get("resources") or {}
    resources: JsonObject = {}
    for kind in _KINDS:
        asked, had = after.get(kind) or {}, before.get(kind) or {}
        kept = {name: value for name, value in asked.items() if name not in _RESIZED}
        kept |= {name: had[name] for name in _RESIZED if name in had}
        if kept:
            resources[kind] = kept
    return {**new, "resources": resources}


def _whole_problems(after: JsonObject | None, before: JsonObject | None) -> list[Cause]:
    """What is wrong with a resize of what a pod asks for as a whole."""
    said = [one for one in (after, before) if one and (one.get("requests") or one.get("limits"))]
    if not said:
        return []
    at = "spec.resources"
    if before is not None and after is None:
        return [forbidden_field(at, "pod-level resources cannot be removed")]
    new, old = {"resources": after or {}}, {"resources": before or {}}
    found = _removed_problems(new, old, at, "pod-level resource") if before is not None else []
    if not same_spec(_unsized(new, old), old):
        found.append(forbidden_field("spec", f"{_ONLY} at pod-level"))
    return found
