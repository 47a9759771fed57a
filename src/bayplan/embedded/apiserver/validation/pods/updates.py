"""How a pod may change: little once it is scheduled, and a little more while it is held back."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.schema.internal import difference, internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    out_of_range,
    required,
)
from bayplan.embedded.apiserver.validation.pods.affinity import REQUIRED
from bayplan.embedded.apiserver.validation.pods.choices import MOST_ID
from bayplan.embedded.apiserver.validation.pods.containers import image_problems
from bayplan.embedded.apiserver.validation.pods.equality import same_spec
from bayplan.embedded.apiserver.validation.pods.scheduling import toleration_problems

_FROZEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_OF_NODES = ("nodeSelectorTerms", "matchExpressions", "matchFields")
_ONLY_ADDED = "only additions are allowed (no mutations or deletions)"


def spec_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """Which changes of a pod's spec are not allowed."""
    found: list[Cause] = []
    for name in ("containers", "initContainers"):
        after, before = new.get(name) or [], old.get(name) or []
        if len(after) != len(before):
            why = "pod updates may not add or remove containers"
            return [*found, forbidden_field(f"spec.{name}", why)]
        found += _image_problems(after, f"spec.{name}")
    wrong, over = _deadline_problems(new, old)
    found += wrong
    if over:
        return found
    found += _toleration_change_problems(new, old)
    found += _gate_change_problems(new, old)
    return found if same_spec(new, old) else found + _other_change_problems(new, old)


def _image_problems(containers: list[JsonObject], at: str) -> list[Cause]:
    found: list[Cause] = []
    for index, container in enumerate(containers):
        if not container.get("image"):
            found.append(required(f"{at}[{index}].image"))
        found += image_problems(container, f"{at}[{index}]")
    return found


def _deadline_problems(new: JsonObject, old: JsonObject) -> tuple[list[Cause], bool]:
    """A deadline may come nearer; says also whether nothing else is looked at."""
    field = "spec.activeDeadlineSeconds"
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if after is None:
        why = "must not update from a positive integer to nil value"
        return ([] if before is None else [bad_value(field, None, why)]), False
    if not 0 <= after <= MOST_ID:
        return [out_of_range(field, after, 0, MOST_ID)], True
    if before is not None and before < after:
        return [bad_value(field, after, "must be less than or equal to previous value")], True
    return [], False


def _toleration_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    after, field = new.get("tolerations") or [], "spec.tolerations"
    kept = [_timeless(one) for one in after]
    if any(_timeless(one) not in kept for one in old.get("tolerations") or ()):
        why = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field(field, why)]
    return toleration_problems(after, field)


def _timeless(toleration: JsonObject) -> JsonObject:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _gate_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
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


def _other_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """Whatever is left of a change when what may change is taken out must be nothing."""
    rest = _emptied(_without_allowed(new, old), old)
    found = _gated_change_problems(rest, old) if old.get("schedulingGates") else []
    if not same_spec(rest, old):
        shown = difference(_written(old), _written(rest), "core.PodSpec")
        found.append(forbidden_field("spec", f"{_FROZEN}\n{shown}"))
    return found


def _emptied(new: JsonObject, old: JsonObject) -> JsonObject:
    """Show lists of node selectors that have lost all items as empty, not as absent."""
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
    """A spec without the account that every pod is given, and that nobody wrote."""
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


def _gated_change_problems(rest: JsonObject, old: JsonObject) -> list[Cause]:
    """While nobody has looked for a node, the choice of nodes may still be narrowed."""
    before, after = old.get("nodeSelector") or {}, rest.get("nodeSelector") or {}
    found: list[Cause] = []
    if any(after.get(key) != value for key, value in before.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        shown = dict(sorted(after.items())) if after else None
        found.append(bad_value("spec.nodeSelector", shown, why))
    _put(rest, "nodeSelector", old.get("nodeSelector"))
    affinity, had = rest.get("affinity"), old.get("affinity")
    wanted, chosen = (affinity or {}).get("nodeAffinity"), (had or {}).get("nodeAffinity")
    if wanted == chosen:
        return found
    found += _node_affinity_problems(wanted or {}, chosen or {})
    merged = _put(dict(affinity or {}), "nodeAffinity", chosen)
    _put(rest, "affinity", None if not merged and had is None else merged)
    return found


def _node_affinity_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    if old.get(REQUIRED) is None:
        return []
    before = old[REQUIRED].get("nodeSelectorTerms") or []
    after = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    field = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    shown = [internal_form(term, "core.NodeSelectorTerm") for term in after]
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [bad_value(field, shown if new.get(REQUIRED) else None, why)]
    return [
        bad_value(f"{field}[{index}]", shown[index], _ONLY_ADDED)
        for index, term in enumerate(before)
        if not _only_adds(after[index], term)
    ]


def _only_adds(new: JsonObject, old: JsonObject) -> bool:
    """Whether a term asks for what it asked for, and perhaps for more; nothing was no node."""
    lists = ("matchExpressions", "matchFields")
    if not any(old.get(name) for name in lists):
        return not any(new.get(name) for name in lists)
    return all(
        (new.get(name) or [])[: len(old.get(name) or ())] == (old.get(name) or []) for name in lists
    )
