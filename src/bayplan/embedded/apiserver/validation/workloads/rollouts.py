"""What is wrong with Deployments, ReplicaSets, ReplicationControllers and DaemonSets.

They share a selector, a template that it must match, and a way to roll out changes; each has its
own words where Kubernetes has.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
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


def deployment_problems(deployment: JsonObject) -> list[Cause]:
    """What is wrong with a Deployment."""
    spec = deployment["spec"]
    return [
        *negative(spec, ["replicas"], "spec"),
        *_selected_template_problems(spec, "deployment"),
        *_deployment_strategy_problems(spec["strategy"], "spec.strategy"),
        *negative(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec"),
        *_deadline_problems(spec),
    ]


def replica_set_problems(replica_set: JsonObject) -> list[Cause]:
    """What is wrong with a ReplicaSet."""
    spec = replica_set["spec"]
    counts = negative(spec, ("replicas", "minReadySeconds"), "spec")
    return [*counts, *_selected_template_problems(spec, "deployment")]


def controller_problems(controller: JsonObject) -> list[Cause]:
    """What is wrong with a ReplicationController, whose selector is a map of labels."""
    spec = controller["spec"]
    selector, template = spec.get("selector") or {}, spec.get("template")
    found = negative(spec, ("minReadySeconds", "replicas"), "spec")
    if not selector:
        found.append(required("spec.selector"))
    if not template:
        return [*found, required("spec.template")]
    found += mismatched_labels({"matchLabels": selector}, template, "spec.template")
    return found + staying_template_problems(template, "spec.template", "ReplicationController")


def _selected_template_problems(spec: JsonObject, kind: str) -> list[Cause]:
    selector, template = spec.get("selector"), spec["template"]
    found = required_selector_problems(selector, kind)
    if selector_problems(selector, "spec.selector"):
        return [*found, bad_value("spec.selector", selector, "invalid label selector")]
    found += mismatched_labels(selector, template, "spec.template")
    return found + staying_template_problems(template, "spec.template", "ReplicaSet")


def required_selector_problems(selector: JsonObject | None, kind: str) -> list[Cause]:
    """What is wrong with the selector of a workload, which must have one and not the empty one."""
    if selector is None:
        return [required("spec.selector")]
    found = selector_problems(selector, "spec.selector")
    if is_empty(selector):
        found.append(bad_value("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return found


def _deployment_strategy_problems(strategy: JsonObject, field: str) -> list[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        why = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden_field(f"{field}.rollingUpdate", why)]
    if kind != "RollingUpdate":
        shown = internal_form(strategy, "apps.DeploymentStrategy")
        return [not_supported(field, shown, ("Recreate", "RollingUpdate"))]
    return _rolling_deployment_problems(rolling or {}, f"{field}.rollingUpdate")


def _rolling_deployment_problems(rolling: JsonObject, field: str) -> list[Cause]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = int_or_percent_problems(unavailable, f"{field}.maxUnavailable")
    found += int_or_percent_problems(surge, f"{field}.maxSurge")
    if int_or_percent(unavailable) == 0 and int_or_percent(surge) == 0:
        why = "may not be 0 when `maxSurge` is 0"
        found.append(bad_value(f"{field}.maxUnavailable", unavailable, why))
    return found + over_hundred_percent(unavailable, f"{field}.maxUnavailable")


def _deadline_problems(spec: JsonObject) -> list[Cause]:
    found = negative(spec, ["progressDeadlineSeconds"], "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        why = "must be greater than minReadySeconds"
        found.append(bad_value("spec.progressDeadlineSeconds", deadline, why))
    return found


def daemon_set_problems(daemon_set: JsonObject) -> list[Cause]:
    """What is wrong with a DaemonSet."""
    spec = daemon_set["spec"]
    selector, template = spec.get("selector"), spec["template"]
    found = selector_problems(selector, "spec.selector")
    if not found:
        found = mismatched_labels(selector, template, "spec.template")
    if selector is not None and is_empty(selector):
        why = "empty selector is invalid for daemonset"
        found.append(bad_value("spec.selector", selector, why))
    found += staying_template_problems(template, "spec.template", "DaemonSet")
    found += negative(spec, ["minReadySeconds"], "spec")
    found += _daemon_update_problems(spec["updateStrategy"], "spec.updateStrategy")
    return found + negative(spec, ["revisionHistoryLimit"], "spec")


def _daemon_update_problems(strategy: JsonObject, field: str) -> list[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        return _rolling_daemon_problems(rolling or {}, f"{field}.rollingUpdate")
    if kind == "OnDelete":
        return []
    shown = internal_form(strategy, "apps.DaemonSetUpdateStrategy")
    return [not_supported(field, shown, ("RollingUpdate", "OnDelete"))]


def _rolling_daemon_problems(rolling: JsonObject, field: str) -> list[Cause]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    places = ((unavailable, f"{field}.maxUnavailable"), (surge, f"{field}.maxSurge"))
    found = [each for value, place in places for each in int_or_percent_problems(value, place)]
    found += [each for value, place in places for each in over_hundred_percent(value, place)]
    if int_or_percent(unavailable) and int_or_percent(surge):
        why = "may not be set when maxUnavailable is non-zero"
        found.append(bad_value(f"{field}.maxSurge", surge, why))
    if not int_or_percent(unavailable) and not int_or_percent(surge):
        found.append(required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return found


def selector_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """A workload's selector stays."""
    before, after = old["spec"].get("selector"), new["spec"].get("selector")
    return [] if before == after else [immutable("spec.selector", after)]


def revision_problems(revision: JsonObject) -> list[Cause]:
    """What is wrong with a ControllerRevision."""
    number, found = revision.get("revision") or 0, []
    if number < 0:
        found.append(bad_value("revision", number, NEGATIVE))
    if revision.get("data") is None:
        found.append(required("data", "data is mandatory"))
    return found


def revision_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What a ControllerRevision keeps is never changed."""
    before, after = old.get("data"), new.get("data")
    return [] if before == after else [immutable("data", after)]
