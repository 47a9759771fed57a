"""Strategies of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and PDBs."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.poddefaults import default_pod_spec
from bayplan.embedded.apiserver.strategies.pods import drop_disabled
from bayplan.embedded.apiserver.strategies.strategy import RestStrategy, child, fill, items
from bayplan.embedded.apiserver.validation.claims import claim_spec_warnings
from bayplan.embedded.apiserver.validation.names import dns_label, path_segment
from bayplan.embedded.apiserver.validation.pods.warnings import template_warnings
from bayplan.embedded.apiserver.validation.workloads import rollouts, templates
from bayplan.embedded.apiserver.validation.workloads.jobchanges import (
    job_change_problems,
    job_status_problems,
)
from bayplan.embedded.apiserver.validation.workloads.jobs import (
    NAME_LABELS,
    UID_LABELS,
    cron_job_change_problems,
    cron_job_problems,
    job_problems,
    new_cron_job_problems,
)

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_MANY_COMPLETIONS = 100_000
_MANY_AT_ONCE = 10_000
_UNLIMITED = 2**31 - 1

FillSpec = Callable[[JsonObject], None]


def _deployment(spec: JsonObject) -> None:
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = child(spec, "strategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _replica_set(spec: JsonObject) -> None:
    fill(spec, replicas=1)


def _stateful_set(spec: JsonObject) -> None:
    fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    strategy = child(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        child(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        fill(strategy["rollingUpdate"], partition=0)
    fill(
        child(spec, "persistentVolumeClaimRetentionPolicy"),
        whenDeleted="Retain",
        whenScaled="Retain",
    )
    for claim in items(spec, "volumeClaimTemplates"):
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        fill(child(claim, "spec"), volumeMode="Filesystem")
        fill(child(claim, "status"), phase="Pending")


def _daemon_set(spec: JsonObject) -> None:
    fill(spec, revisionHistoryLimit=10)
    strategy = child(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)


def _job(spec: JsonObject) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        fill(spec, completions=1)
    fill(spec, backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else _UNLIMITED)
    fill(spec, parallelism=1, completionMode="NonIndexed", suspend=False, manualSelector=False)
    failing = spec.get("podFailurePolicy")
    fill(spec, podReplacementPolicy="TerminatingOrFailed" if failing is None else "Failed")
    _default_patterns(spec)


def _default_patterns(spec: JsonObject) -> None:
    for rule in items(spec.get("podFailurePolicy") or {}, "rules"):
        for pattern in items(rule, "onPodConditions"):
            fill(pattern, status="True")


def _defaults(fill_spec: FillSpec) -> Callable[[JsonObject], None]:
    def default(obj: JsonObject) -> None:
        spec = child(obj, "spec")
        fill_spec(spec)
        _default_template(spec)

    return default


def _default_template(spec: JsonObject) -> None:
    template = child(spec, "template")
    child(template, "metadata")
    default_pod_spec(child(template, "spec"))
    drop_disabled(template["spec"])


def _default_cron_job(obj: JsonObject) -> None:
    spec = child(obj, "spec")
    fill(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    # Its Jobs get the defaults of Jobs when they are created.
    job = child(child(spec, "jobTemplate"), "spec")
    _default_patterns(job)
    _default_template(job)


def _controller(obj: JsonObject) -> None:
    spec = child(obj, "spec")
    _replica_set(spec)
    if not spec.get("template"):
        return
    _default_template(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels:
        fill(spec, selector=dict(labels))
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def _new_stateful_set(stateful_set: JsonObject) -> None:
    """Remove `maxUnavailable`, whose feature gate is off."""
    strategy = stateful_set["spec"]["updateStrategy"]
    (strategy.get("rollingUpdate") or {}).pop("maxUnavailable", None)


def _changed_stateful_set(new: JsonObject, old: JsonObject) -> None:
    before = old["spec"]["updateStrategy"].get("rollingUpdate") or {}
    if "maxUnavailable" not in before:
        _new_stateful_set(new)


def _new_daemon_set(daemon_set: JsonObject) -> None:
    _count_template(daemon_set, max(_template_generation(daemon_set), 1))


def _changed_daemon_set(new: JsonObject, old: JsonObject) -> None:
    """Keep the server-owned template generation."""
    changed = new["spec"].get("template") != old["spec"].get("template")
    _count_template(new, _template_generation(old) + changed)


def _template_generation(daemon_set: JsonObject) -> int:
    annotation = (daemon_set["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "")
    return (
        int(annotation)
        if annotation.isascii() and annotation.isdigit() and len(annotation) < 19
        else 0
    )


def _count_template(daemon_set: JsonObject, number: int) -> None:
    child(daemon_set["metadata"], "annotations")[_TEMPLATE_GENERATION] = str(number)


def _new_job(job: JsonObject) -> None:
    """Set the generated selector and labels of a job."""
    spec, meta = job["spec"], job["metadata"]
    if not spec.get("manualSelector"):
        labels = child(child(child(spec, "template"), "metadata"), "labels")
        fill(labels, **dict.fromkeys(NAME_LABELS, meta["name"]))
        fill(labels, **dict.fromkeys(UID_LABELS, meta["uid"]))
        wanted = child(child(spec, "selector"), "matchLabels")
        fill(wanted, **{UID_LABELS[1]: meta["uid"]})
    _label_job(job)


def _label_job(job: JsonObject, _old: JsonObject | None = None) -> None:
    """Copy the template's labels to a job without labels."""
    labels = (job["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _template_warnings(obj: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a pod template that is new or changed."""
    if old is not None and obj["spec"] == old["spec"]:
        return []
    return template_warnings(obj["spec"]["template"], "spec.template")


def _warnings(obj: JsonObject, old: JsonObject | None) -> list[str]:
    return [*_name_warnings(obj, old), *_template_warnings(obj, old)]


def _name_warnings(obj: JsonObject, old: JsonObject | None) -> list[str]:
    """Warn about names that make invalid host names of pods."""
    problems = [] if old is not None else dns_label(obj["metadata"].get("name") or "")
    if not problems:
        return []
    what = "this is used in Pod names and hostnames, which can result in surprising behavior"
    return [f"metadata.name: {what}; a DNS label is recommended: [{' '.join(problems)}]"]


def _job_warnings(job: JsonObject, old: JsonObject | None) -> list[str]:
    return [*_warnings(job, old), *_many_warnings(job["spec"], "spec")]


def _cron_job_warnings(cron_job: JsonObject, old: JsonObject | None) -> list[str]:
    job = cron_job["spec"]["jobTemplate"].get("spec") or {}
    found = [*_name_warnings(cron_job, old), *_many_warnings(job, "spec.jobTemplate.spec")]
    if old is not None and cron_job["spec"] == old["spec"]:
        return found
    return found + template_warnings(job.get("template") or {}, "spec.jobTemplate.spec.template")


def _many_warnings(spec: JsonObject, field: str) -> list[str]:
    many = (spec.get("completions") or 0) > _MANY_COMPLETIONS
    at_once = (spec.get("parallelism") or 0) > _MANY_AT_ONCE
    if spec.get("completionMode") != "Indexed" or not (many and at_once):
        return []
    what = (
        "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher "
        "than 10^4, Kubernetes might not be able to track completedIndexes when a big number of "
        "indexes fail"
    )
    return [f"{field}: {what}"]


def _stateful_set_warnings(stateful_set: JsonObject, old: JsonObject | None) -> list[str]:
    found, spec = _template_warnings(stateful_set, old), stateful_set["spec"]
    for index, claim in enumerate(items(spec, "volumeClaimTemplates")):
        place = f"spec.volumeClaimTemplates[{index}]" + ("" if old is None else ".Spec")
        found += claim_spec_warnings(claim.get("spec") or {}, place)
    if (spec.get("revisionHistoryLimit") or 0) >= 0:
        return found
    what = "a negative value retains all historical revisions; a value >= 0 is recommended"
    return [*found, f"spec.revisionHistoryLimit: {what}"]


WORKLOADS = {
    "deployments.apps": RestStrategy(
        default=_defaults(_deployment),
        validate=rollouts.deployment_problems,
        validate_update=rollouts.selector_change_problems,
        validate_status=templates.deployment_status_problems,
        warnings=_warnings,
    ),
    "replicasets.apps": RestStrategy(
        default=_defaults(_replica_set),
        validate=rollouts.replica_set_problems,
        validate_update=rollouts.selector_change_problems,
        validate_status=templates.replica_set_status_problems,
        warnings=_warnings,
    ),
    "statefulsets.apps": RestStrategy(
        name_rule=dns_label,
        default=_defaults(_stateful_set),
        prepare_create=_new_stateful_set,
        prepare_update=_changed_stateful_set,
        validate=rollouts.stateful_set_problems,
        validate_new=rollouts.new_stateful_set_problems,
        validate_update=rollouts.stateful_set_change_problems,
        validate_status=templates.stateful_set_status_problems,
        warnings=_stateful_set_warnings,
    ),
    "daemonsets.apps": RestStrategy(
        default=_defaults(_daemon_set),
        prepare_create=_new_daemon_set,
        prepare_update=_changed_daemon_set,
        validate=rollouts.daemon_set_problems,
        validate_update=rollouts.selector_change_problems,
        validate_status=templates.daemon_set_status_problems,
        warnings=_template_warnings,
    ),
    "replicationcontrollers": RestStrategy(
        orphans=True,
        default=_controller,
        validate=rollouts.controller_problems,
        validate_status=templates.replica_set_status_problems,
        warnings=_warnings,
    ),
    "controllerrevisions.apps": RestStrategy(
        validate=rollouts.revision_problems,
        validate_update=rollouts.revision_change_problems,
    ),
    "jobs.batch": RestStrategy(
        default=_defaults(_job),
        prepare_create=_new_job,
        prepare_update=_label_job,
        orphans=True,
        validate=job_problems,
        validate_update=job_change_problems,
        validate_status=job_status_problems,
        warnings=_job_warnings,
    ),
    "cronjobs.batch": RestStrategy(
        default=_default_cron_job,
        validate=cron_job_problems,
        validate_new=new_cron_job_problems,
        validate_update=cron_job_change_problems,
        warnings=_cron_job_warnings,
    ),
    "poddisruptionbudgets.policy": RestStrategy(
        name_rule=path_segment,
        validate=rollouts.budget_problems,
        validate_status=rollouts.budget_status_problems,
        metadata_last=True,
    ),
}
