"""Validation of Deployments, ReplicaSets, DaemonSets, StatefulSets and PodDisruptionBudgets.

They share a selector, a template that it must match, and an update strategy; messages differ where
Kubernetes' do.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    NEGATIVE,
    bad_value,
    forbidden_field,
    immutable,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.claims import claim_spec_problems
from bayplan.embedded.apiserver.validation.conditions import condition_problems
from bayplan.embedded.apiserver.validation.names import dns_label, name_problems
from bayplan.embedded.apiserver.validation.numbers import (
    int_or_percent,
    int_or_percent_problems,
    negative,
    over_hundred_percent,
)
from bayplan.embedded.apiserver.validation.selectors import is_empty, selector_problems
from bayplan.embedded.apiserver.validation.workloads.templates import (
    mismatched_labels,
    staying_template_problems,
)


def deployment_problems(deployment: JsonObject) -> list[FieldCause]:
    """Return the problems of a Deployment."""
    spec = deployment["spec"]
    return [
        *negative(spec, ["replicas"], "spec"),
        *_selected_template_problems(spec, "deployment"),
        *_deployment_strategy_problems(spec["strategy"], "spec.strategy"),
        *negative(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec"),
        *_deadline_problems(spec),
    ]


def replica_set_problems(replica_set: JsonObject) -> list[FieldCause]:
    """Return the problems of a ReplicaSet."""
    spec = replica_set["spec"]
    counts = negative(spec, ("replicas", "minReadySeconds"), "spec")
    return [*counts, *_selected_template_problems(spec, "deployment")]


def controller_problems(controller: JsonObject) -> list[FieldCause]:
    """Return the problems of a ReplicationController, whose selector is a map of labels."""
    spec = controller["spec"]
    selector, template = spec.get("selector") or {}, spec.get("template")
    found = negative(spec, ("minReadySeconds", "replicas"), "spec")
    if not selector:
        found.append(required("spec.selector"))
    if not template:
        return [*found, required("spec.template")]
    found += mismatched_labels({"matchLabels": selector}, template, "spec.template")
    return found + staying_template_problems(template, "spec.template", "ReplicationController")


def _selected_template_problems(spec: JsonObject, kind: str) -> list[FieldCause]:
    selector, template = spec.get("selector"), spec["template"]
    found = required_selector_problems(selector, kind)
    if selector_problems(selector, "spec.selector"):
        return [*found, bad_value("spec.selector", selector, "invalid label selector")]
    found += mismatched_labels(selector, template, "spec.template")
    return found + staying_template_problems(template, "spec.template", "ReplicaSet")


def required_selector_problems(selector: JsonObject | None, kind: str) -> list[FieldCause]:
    """Return the problems of a workload's selector, which must not be empty."""
    if selector is None:
        return [required("spec.selector")]
    found = selector_problems(selector, "spec.selector")
    if is_empty(selector):
        found.append(bad_value("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return found


def _deployment_strategy_problems(strategy: JsonObject, field: str) -> list[FieldCause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden_field(f"{field}.rollingUpdate", detail)]
    if kind != "RollingUpdate":
        shown = internal_form(strategy, "apps.DeploymentStrategy")
        return [not_supported(field, shown, ("Recreate", "RollingUpdate"))]
    return _rolling_deployment_problems(rolling or {}, f"{field}.rollingUpdate")


def _rolling_deployment_problems(rolling: JsonObject, field: str) -> list[FieldCause]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = int_or_percent_problems(unavailable, f"{field}.maxUnavailable")
    found += int_or_percent_problems(surge, f"{field}.maxSurge")
    if int_or_percent(unavailable) == 0 and int_or_percent(surge) == 0:
        detail = "may not be 0 when `maxSurge` is 0"
        found.append(bad_value(f"{field}.maxUnavailable", unavailable, detail))
    return found + over_hundred_percent(unavailable, f"{field}.maxUnavailable")


def _deadline_problems(spec: JsonObject) -> list[FieldCause]:
    found = negative(spec, ["progressDeadlineSeconds"], "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        detail = "must be greater than minReadySeconds"
        found.append(bad_value("spec.progressDeadlineSeconds", deadline, detail))
    return found


def daemon_set_problems(daemon_set: JsonObject) -> list[FieldCause]:
    """Return the problems of a DaemonSet."""
    spec = daemon_set["spec"]
    selector, template = spec.get("selector"), spec["template"]
    found = selector_problems(selector, "spec.selector")
    if not found:
        found = mismatched_labels(selector, template, "spec.template")
    if selector is not None and is_empty(selector):
        detail = "empty selector is invalid for daemonset"
        found.append(bad_value("spec.selector", selector, detail))
    found += staying_template_problems(template, "spec.template", "DaemonSet")
    found += negative(spec, ["minReadySeconds"], "spec")
    found += _daemon_update_problems(spec["updateStrategy"], "spec.updateStrategy")
    return found + negative(spec, ["revisionHistoryLimit"], "spec")


def _daemon_update_problems(strategy: JsonObject, field: str) -> list[FieldCause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        return _rolling_daemon_problems(rolling or {}, f"{field}.rollingUpdate")
    if kind == "OnDelete":
        return []
    shown = internal_form(strategy, "apps.DaemonSetUpdateStrategy")
    return [not_supported(field, shown, ("RollingUpdate", "OnDelete"))]


def _rolling_daemon_problems(rolling: JsonObject, field: str) -> list[FieldCause]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    places = ((unavailable, f"{field}.maxUnavailable"), (surge, f"{field}.maxSurge"))
    found = [each for value, place in places for each in int_or_percent_problems(value, place)]
    found += [each for value, place in places for each in over_hundred_percent(value, place)]
    if int_or_percent(unavailable) and int_or_percent(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        found.append(bad_value(f"{field}.maxSurge", surge, detail))
    if not int_or_percent(unavailable) and not int_or_percent(surge):
        found.append(required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return found


def selector_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse a change of a workload's selector."""
    before, after = old["spec"].get("selector"), new["spec"].get("selector")
    return [] if before == after else [immutable("spec.selector", after)]


def revision_problems(revision: JsonObject) -> list[FieldCause]:
    """Return the problems of a ControllerRevision."""
    number, found = revision.get("revision") or 0, []
    if number < 0:
        found.append(bad_value("revision", number, NEGATIVE))
    if revision.get("data") is None:
        found.append(required("data", "data is mandatory"))
    return found


def revision_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse a change of a ControllerRevision's data."""
    before, after = old.get("data"), new.get("data")
    return [] if before == after else [immutable("data", after)]


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


def stateful_set_problems(stateful_set: JsonObject) -> list[FieldCause]:
    """Return the problems of a StatefulSet, new or old."""
    spec = stateful_set["spec"]
    found = _management_problems(spec)
    found += _stateful_update_problems(spec["updateStrategy"], "spec.updateStrategy")
    found += _retention_problems(spec.get("persistentVolumeClaimRetentionPolicy") or {})
    found += negative(spec, ("replicas", "minReadySeconds"), "spec")
    found += negative(spec.get("ordinals") or {}, ["start"], "spec.ordinals")
    found += required_selector_problems(spec.get("selector"), "statefulset")
    return found + _stateful_template_problems(spec)


def new_stateful_set_problems(stateful_set: JsonObject) -> list[FieldCause]:
    """Return the problems of immutable fields of a new StatefulSet."""
    spec = stateful_set["spec"]
    found: list[FieldCause] = []
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        where = f"spec.volumeClaimTemplates[{index}].spec"
        found += claim_spec_problems(claim.get("spec") or {}, where)
    if spec.get("serviceName"):
        found += name_problems(dns_label, spec["serviceName"], "spec.serviceName")
    return found


def _management_problems(spec: JsonObject) -> list[FieldCause]:
    policy = spec.get("podManagementPolicy")
    if policy in {"OrderedReady", "Parallel"}:
        return []
    return [bad_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")]


def _stateful_update_problems(strategy: JsonObject, field: str) -> list[FieldCause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        return _rolling_stateful_problems(rolling or {}, f"{field}.rollingUpdate")
    if kind != "OnDelete":
        shown = internal_form(strategy, "apps.StatefulSetUpdateStrategy")
        return [bad_value(field, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    shown = internal_form(rolling, "apps.RollingUpdateStatefulSetStrategy")
    detail = "only allowed for updateStrategy 'RollingUpdate'"
    return [bad_value(f"{field}.rollingUpdate", shown, detail)]


def _rolling_stateful_problems(rolling: JsonObject, field: str) -> list[FieldCause]:
    found = negative(rolling, ["partition"], field)
    unavailable, where = rolling.get("maxUnavailable"), f"{field}.maxUnavailable"
    if unavailable is None:
        return found
    found += int_or_percent_problems(unavailable, where)
    if int_or_percent(unavailable) == 0:
        found.append(bad_value(where, unavailable, "cannot be 0"))
    return found + over_hundred_percent(unavailable, where)


def _retention_problems(policy: JsonObject) -> list[FieldCause]:
    return [
        not_supported(
            f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ("Retain", "Delete")
        )
        for name in ("whenDeleted", "whenScaled")
        if (value := policy.get(name)) not in {"Retain", "Delete"}
    ]


def _stateful_template_problems(spec: JsonObject) -> list[FieldCause]:
    selector = spec.get("selector")
    if selector_problems(selector, "spec.selector"):
        return [bad_value("spec.selector", selector, "")]
    template = _as_pods_will_be(spec)
    found = mismatched_labels(selector, template, "spec.template")
    return found + staying_template_problems(template, "spec.template", "StatefulSet")


def _as_pods_will_be(spec: JsonObject) -> JsonObject:
    """Return the template as the controller completes it, with the claims' volumes."""
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


def stateful_set_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a StatefulSet: immutable fields."""
    before, after = old["spec"], new["spec"]
    changed = (name for name in {*before, *after} if before.get(name) != after.get(name))
    if all(name in _STATEFUL_SET_MAY_CHANGE for name in changed):
        return []
    detail = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [forbidden_field("spec", detail)]


_AMOUNTS = ("minAvailable", "maxUnavailable")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def budget_problems(budget: JsonObject) -> list[FieldCause]:
    """Return the problems of a budget."""
    spec = budget.get("spec") or {}
    found = _amount_problems(spec)
    found += selector_problems(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return found


def _amount_problems(spec: JsonObject) -> list[FieldCause]:
    amounts = [(name, spec[name]) for name in _AMOUNTS if spec.get(name) is not None]
    found: list[FieldCause] = []
    if len(amounts) == len(_AMOUNTS):
        shown = internal_form(spec, "policy.PodDisruptionBudgetSpec")
        detail = "minAvailable and maxUnavailable cannot be both set"
        found.append(bad_value("spec", shown, detail))
    for name, amount in amounts:
        found += int_or_percent_problems(amount, f"spec.{name}")
        found += over_hundred_percent(amount, f"spec.{name}")
    return found


def budget_status_problems(new: JsonObject, _old: JsonObject) -> list[FieldCause]:
    """Return the problems of a budget's status."""
    status = new.get("status") or {}
    found = condition_problems(status.get("conditions") or (), "status.conditions")
    return found + negative(status, _COUNTS, "status")
