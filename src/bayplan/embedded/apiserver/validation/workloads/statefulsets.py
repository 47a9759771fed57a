"""What is wrong with StatefulSets, and what of them may change."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, not_supported
from bayplan.embedded.apiserver.validation.claims import claim_spec_problems
from bayplan.embedded.apiserver.validation.names import dns_label, name_problems
from bayplan.embedded.apiserver.validation.numbers import (
    int_or_percent,
    int_or_percent_problems,
    negative,
    over_hundred_percent,
)
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.embedded.apiserver.validation.workloads.rollouts import required_selector_problems
from bayplan.embedded.apiserver.validation.workloads.templates import (
    mismatched_labels,
    staying_template_problems,
)

_STATEFUL_SET_MAY_CHANGE = frozenset(
    (
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    )
)


def stateful_set_problems(stateful_set: JsonObject) -> list[Cause]:
    """What is wrong with a StatefulSet, new or old."""
    spec = stateful_set["spec"]
    found = _management_problems(spec)
    found += _stateful_update_problems(spec["updateStrategy"], "spec.updateStrategy")
    found += _retention_problems(spec.get("persistentVolumeClaimRetentionPolicy") or {})
    found += negative(spec, ("replicas", "minReadySeconds"), "spec")
    found += negative(spec.get("ordinals") or {}, ["start"], "spec.ordinals")
    found += required_selector_problems(spec.get("selector"), "statefulset")
    return found + _stateful_template_problems(spec)


def new_stateful_set_problems(stateful_set: JsonObject) -> list[Cause]:
    """What else is wrong with a new StatefulSet: what cannot change is not looked at again."""
    spec = stateful_set["spec"]
    found: list[Cause] = []
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        where = f"spec.volumeClaimTemplates[{index}].spec"
        found += claim_spec_problems(claim.get("spec") or {}, where)
    if spec.get("serviceName"):
        found += name_problems(dns_label, spec["serviceName"], "spec.serviceName")
    return found


def _management_problems(spec: JsonObject) -> list[Cause]:
    policy = spec.get("podManagementPolicy")
    if policy in {"OrderedReady", "Parallel"}:
        return []
    return [bad_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")]


def _stateful_update_problems(strategy: JsonObject, field: str) -> list[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        return _rolling_stateful_problems(rolling or {}, f"{field}.rollingUpdate")
    if kind != "OnDelete":
        shown = internal_form(strategy, "apps.StatefulSetUpdateStrategy")
        return [bad_value(field, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    shown = internal_form(rolling, "apps.RollingUpdateStatefulSetStrategy")
    why = "only allowed for updateStrategy 'RollingUpdate'"
    return [bad_value(f"{field}.rollingUpdate", shown, why)]


def _rolling_stateful_problems(rolling: JsonObject, field: str) -> list[Cause]:
    found = negative(rolling, ["partition"], field)
    unavailable, where = rolling.get("maxUnavailable"), f"{field}.maxUnavailable"
    if unavailable is None:
        return found
    found += int_or_percent_problems(unavailable, where)
    if int_or_percent(unavailable) == 0:
        found.append(bad_value(where, unavailable, "cannot be 0"))
    return found + over_hundred_percent(unavailable, where)


def _retention_problems(policy: JsonObject) -> list[Cause]:
    return [
        not_supported(
            f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ("Retain", "Delete")
        )
        for name in ("whenDeleted", "whenScaled")
        if (value := policy.get(name)) not in {"Retain", "Delete"}
    ]


def _stateful_template_problems(spec: JsonObject) -> list[Cause]:
    selector = spec.get("selector")
    if selector_problems(selector, "spec.selector"):
        return [bad_value("spec.selector", selector, "")]
    template = _as_pods_will_be(spec)
    found = mismatched_labels(selector, template, "spec.template")
    return found + staying_template_problems(template, "spec.template", "StatefulSet")


def _as_pods_will_be(spec: JsonObject) -> JsonObject:
    """The template with what the controller will set: the claims' volumes, and no host names."""
    template: JsonObject = spec["template"]
    pod = {
        name: value
        for name, value in (template.get("spec") or {}).items()
        if name not in ("subdomain", "hostname")
    }
    names = [
        (claim.get("metadata") or {}).get("name") or ""
        for claim in spec.get("volumeClaimTemplates") or ()
    ]
    if names:
        claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        others = [one for one in pod.get("volumes") or () if one.get("name") not in names]
        pod["volumes"] = claimed + others
    return {**template, "spec": pod}


def stateful_set_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """Most of a StatefulSet stays as it was made."""
    before, after = old["spec"], new["spec"]
    changed = (name for name in {*before, *after} if before.get(name) != after.get(name))
    if all(name in _STATEFUL_SET_MAY_CHANGE for name in changed):
        return []
    why = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [forbidden_field("spec", why)]
