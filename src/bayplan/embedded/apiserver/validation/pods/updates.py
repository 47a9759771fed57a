"""Validation of changes of a pod: few once it is scheduled, more while it is gated.

Resizing, and adding ephemeral containers, go through subresources that change nothing else.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone
from bayplan.embedded.apiserver.schema.internal import difference, internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    out_of_range,
    quoted,
    required,
)
from bayplan.embedded.apiserver.validation.pods.annotations import MIRROR
from bayplan.embedded.apiserver.validation.pods.choices import MAX_ID
from bayplan.embedded.apiserver.validation.pods.containers import image_problems
from bayplan.embedded.apiserver.validation.pods.resources import qos_class
from bayplan.embedded.apiserver.validation.pods.scheduling import REQUIRED, toleration_problems
from bayplan.kube.quantity import QuantityError
from bayplan.kube.quantity import parse as amount

_AMOUNTS = ("limits", "requests", "overhead")


def same_spec(one: JsonObject, other: JsonObject) -> bool:
    """Return whether two specs, or parts of specs, are semantically equal."""
    return one == other or _plain(one) == _plain(other)


def _plain(value: JsonValue, name: str = "") -> JsonValue:
    if isinstance(value, dict):
        if name in _AMOUNTS:
            return {key: _amount(item) for key, item in value.items()}
        kept = ((key, _plain(item, key)) for key, item in value.items())
        return {key: item for key, item in kept if item not in (None, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _amount(value: JsonValue) -> JsonValue:
    try:
        return amount(value)
    except QuantityError:
        return value


_FROZEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_OF_NODES = ("nodeSelectorTerms", "matchExpressions", "matchFields")
_ONLY_ADDED = "only additions are allowed (no mutations or deletions)"


def spec_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a pod's spec."""
    found: list[FieldCause] = []
    for name in ("containers", "initContainers"):
        after, before = new.get(name) or [], old.get(name) or []
        if len(after) != len(before):
            detail = "pod updates may not add or remove containers"
            return [*found, forbidden_field(f"spec.{name}", detail)]
        found += _image_problems(after, f"spec.{name}")
    wrong, over = _deadline_problems(new, old)
    found += wrong
    if over:
        return found
    found += _toleration_change_problems(new, old)
    found += _gate_change_problems(new, old)
    return found if same_spec(new, old) else found + _other_change_problems(new, old)


def _image_problems(containers: list[JsonObject], at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, container in enumerate(containers):
        if not container.get("image"):
            found.append(required(f"{at}[{index}].image"))
        found += image_problems(container, f"{at}[{index}]")
    return found


def _deadline_problems(new: JsonObject, old: JsonObject) -> tuple[list[FieldCause], bool]:
    """Allow a shorter deadline; returns also whether to skip the other rules."""
    field = "spec.activeDeadlineSeconds"
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if after is None:
        detail = "must not update from a positive integer to nil value"
        return ([] if before is None else [bad_value(field, None, detail)]), False
    if not 0 <= after <= MAX_ID:
        return [out_of_range(field, after, 0, MAX_ID)], True
    if before is not None and before < after:
        return [bad_value(field, after, "must be less than or equal to previous value")], True
    return [], False


def _toleration_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    after, field = new.get("tolerations") or [], "spec.tolerations"
    kept = [_timeless(one) for one in after]
    if any(_timeless(one) not in kept for one in old.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field(field, detail)]
    return toleration_problems(after, field)


def _timeless(toleration: JsonObject) -> JsonObject:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _gate_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    had = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    places = {
        gate.get("name"): index for index, gate in enumerate(new.get("schedulingGates") or ())
    }
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{name}'",
        )
        for name, index in places.items()
        if name not in had
    ]


def _other_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse all other changes."""
    rest = _emptied(_without_allowed(new, old), old)
    found = _gated_change_problems(rest, old) if old.get("schedulingGates") else []
    if not same_spec(rest, old):
        shown = difference(_written(old), _written(rest), "core.PodSpec")
        found.append(forbidden_field("spec", f"{_FROZEN}\n{shown}"))
    return found


def _emptied(new: JsonObject, old: JsonObject) -> JsonObject:
    """Show node selector lists that became empty as empty, not as absent."""
    if not new.get("affinity") or not old.get("affinity"):
        return new
    return {**new, "affinity": _with_empty_lists(new["affinity"], old["affinity"])}


def _with_empty_lists(new: JsonValue, old: JsonValue) -> JsonValue:
    if isinstance(new, list) and isinstance(old, list):
        pairs = zip(new, old, strict=False)
        return [_with_empty_lists(one, before) for one, before in pairs] + new[len(old) :]
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    lost = (name for name in _OF_NODES if old.get(name) and not new.get(name))
    kept = {name: _with_empty_lists(item, old.get(name)) for name, item in new.items()}
    return kept | {name: [] for name in lost}


def _written(spec: JsonObject) -> JsonObject:
    """Return a spec without the default service account."""
    given = spec.get("serviceAccountName") == "default"
    names = ("serviceAccountName", "serviceAccount") if given else ()
    return {name: value for name, value in spec.items() if name not in names}


def _without_allowed(new: JsonObject, old: JsonObject) -> JsonObject:
    rest = dict(new)
    for name in ("containers", "initContainers"):
        pairs = zip(new.get(name) or (), old.get(name) or (), strict=True)
        kept = [_put(dict(one), "image", before.get("image")) for one, before in pairs]
        _put(rest, name, kept or None)
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put(rest, name, old.get(name))
    grace = "terminationGracePeriodSeconds"
    if (old.get(grace) or 0) < 0 and new.get(grace) == 1:
        rest[grace] = old[grace]
    return rest


def _put(obj: JsonObject, name: str, value: object) -> JsonObject:
    if value is None:
        obj.pop(name, None)
    else:
        obj[name] = value
    return obj


def _gated_change_problems(rest: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Allow a gated pod's node selection to be narrowed."""
    before, after = old.get("nodeSelector") or {}, rest.get("nodeSelector") or {}
    found: list[FieldCause] = []
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        shown = dict(sorted(after.items())) if after else None
        found.append(bad_value("spec.nodeSelector", shown, detail))
    _put(rest, "nodeSelector", old.get("nodeSelector"))
    affinity, had = rest.get("affinity"), old.get("affinity")
    wanted, chosen = (affinity or {}).get("nodeAffinity"), (had or {}).get("nodeAffinity")
    if wanted == chosen:
        return found
    found += _node_affinity_problems(wanted or {}, chosen or {})
    merged = _put(dict(affinity or {}), "nodeAffinity", chosen)
    _put(rest, "affinity", None if not merged and had is None else merged)
    return found


def _node_affinity_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    if old.get(REQUIRED) is None:
        return []
    before = old[REQUIRED].get("nodeSelectorTerms") or []
    after = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    field = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    shown = [internal_form(term, "core.NodeSelectorTerm") for term in after]
    if before and len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [bad_value(field, shown if new.get(REQUIRED) else None, detail)]
    return [
        bad_value(f"{field}[{index}]", shown[index], _ONLY_ADDED)
        for index, term in enumerate(before)
        if not _only_adds(after[index], term)
    ]


def _only_adds(new: JsonObject, old: JsonObject) -> bool:
    """Return whether a term has the old requirements, and perhaps more."""
    lists = ("matchExpressions", "matchFields")
    if not any(old.get(name) for name in lists):
        return not any(new.get(name) for name in lists)
    return all(
        (new.get(name) or [])[: len(old.get(name) or ())] == (old.get(name) or []) for name in lists
    )


_RESIZED = ("cpu", "memory")
_KINDS = ("requests", "limits")
_ONLY = "only cpu and memory resources are mutable"
_NO_FIELD = "[]"
"""kube-apiserver's path of problems of the whole pod."""


def is_static(pod: JsonObject) -> bool:
    """Return whether a pod is a mirror pod."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def resized(wanted: JsonObject, old: JsonObject) -> JsonObject:
    """Return the old pod with the wanted resources and resize policies."""
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
    """Return the old pod with the wanted ephemeral containers."""
    spec = dict(old["spec"])
    _take(spec, wanted.get("spec") or {}, "ephemeralContainers")
    return {**old, "metadata": _kept_metadata(wanted, old), "spec": spec}


def ephemeral_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Allow only additions of ephemeral containers."""
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


def static_pod_problem(what: str) -> list[FieldCause]:
    """Return the problem that static pods do not support this."""
    return [forbidden_field(_NO_FIELD, f"static pods {what}")]


def resize_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a resize."""
    after, before = new["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden_field(_NO_FIELD, "windows pods cannot be resized")]
    found: list[FieldCause] = []
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(before)) != qos_class(after):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.append(bad_value("spec", (new.get("status") or {}).get("qosClass") or "", detail))
    if not _is_supported(status):
        found.append(forbidden_field("spec", "Pod running on node without support for resize"))
    found += _whole_problems(after.get("resources"), before.get("resources"))
    misplaced = [*_order_problems(after, before, "containers")]
    misplaced += _order_problems(after, before, "initContainers")
    return found + (misplaced or _container_problems(after, before))


def _is_supported(status: JsonObject) -> bool:
    """Return whether the node reports the resources of its running containers."""
    for one in status.get("containerStatuses") or ():
        if (one.get("state") or {}).get("running") is not None:
            return one.get("resources") is not None
    return True


def _order_problems(after: JsonObject, before: JsonObject, kind: str) -> list[FieldCause]:
    new, old = after.get(kind) or [], before.get(kind) or []
    if len(new) != len(old):
        return [forbidden_field(f"spec.{kind}", f"{kind} may not be added or removed on resize")]
    detail = f"{kind} may not be renamed or reordered on resize"
    return [
        forbidden_field(f"spec.{kind}[{index}].name", detail)
        for index, pair in enumerate(zip(new, old, strict=True))
        if pair[0].get("name") != pair[1].get("name")
    ]


def _container_problems(after: JsonObject, before: JsonObject) -> list[FieldCause]:
    removed: list[FieldCause] = []
    changed: list[FieldCause] = []
    for kind in ("initContainers", "containers"):
        for index, old in enumerate(before.get(kind) or ()):
            new, at = after[kind][index], f"spec.{kind}[{index}]"
            removed += _removed_problems(new, old, f"{at}.resources", "resource")
            if not same_spec(_unsized(new, old), old):
                changed.append(_changed_problem(kind, at))
            elif kind == "initContainers" and not same_spec(new, old):
                changed += _restart_problems(new, at)
    return removed + changed


def _changed_problem(kind: str, at: str) -> FieldCause:
    if kind == "containers":
        return forbidden_field("spec", _ONLY)
    detail = "only cpu and memory resources for init or sidecar containers are mutable"
    return forbidden_field(at, detail)


def _restart_problems(container: JsonObject, at: str) -> list[FieldCause]:
    if container.get("restartPolicy") == "Always":
        return []
    detail = (
        "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    )
    return [
        forbidden_field(at, detail)
        for one in container.get("resizePolicy") or ()
        if one.get("restartPolicy") == "RestartContainer"
    ]


def _removed_problems(new: JsonObject, old: JsonObject, at: str, what: str) -> list[FieldCause]:
    after, before = new.get("resources") or {}, old.get("resources") or {}
    return [
        forbidden_field(f"{at}.{kind}", f"{what} {kind} cannot be removed")
        for kind in _KINDS
        if (before.get(kind) or {}).keys() - (after.get(kind) or {}).keys()
    ]


def _unsized(new: JsonObject, old: JsonObject) -> JsonObject:
    """Return a container with the old CPU and memory."""
    after, before = new.get("resources") or {}, old.get("resources") or {}
    resources: JsonObject = {}
    for kind in _KINDS:
        requested, had = after.get(kind) or {}, before.get(kind) or {}
        kept = {name: value for name, value in requested.items() if name not in _RESIZED}
        kept |= {name: had[name] for name in _RESIZED if name in had}
        if kept:
            resources[kind] = kept
    return {**new, "resources": resources}


def _whole_problems(after: JsonObject | None, before: JsonObject | None) -> list[FieldCause]:
    """Return the problems of a resize of pod-level resources."""
    sized = [one for one in (after, before) if one and (one.get("requests") or one.get("limits"))]
    if not sized:
        return []
    at = "spec.resources"
    if before is not None and after is None:
        return [forbidden_field(at, "pod-level resources cannot be removed")]
    new, old = {"resources": after or {}}, {"resources": before or {}}
    found = _removed_problems(new, old, at, "pod-level resource") if before is not None else []
    if not same_spec(_unsized(new, old), old):
        found.append(forbidden_field("spec", f"{_ONLY} at pod-level"))
    return found
