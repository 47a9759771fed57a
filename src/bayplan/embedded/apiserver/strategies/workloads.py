"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.poddefaults import default_pod_spec
from bayplan.embedded.apiserver.strategies.strategy import Strategy, child, fill, items
from bayplan.embedded.apiserver.validation.causes import bad_value, required
from bayplan.embedded.apiserver.validation.pods.spec import pod_spec_problems

_JOB_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_NAMES = ("job-name", "batch.kubernetes.io/job-name")

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
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), partition=0)
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
    fill(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    fill(spec, podReplacementPolicy="TerminatingOrFailed")


def _defaults(fill_spec: FillSpec) -> Callable[[JsonObject], None]:
    def default(obj: JsonObject) -> None:
        spec = child(obj, "spec")
        fill_spec(spec)
        _default_template(spec)

    return default


def _default_template(spec: JsonObject) -> None:
    template = child(spec, "template")
    child(template, "metadata")
    if template.get("spec") is not None:
        default_pod_spec(template["spec"])


def _default_cron_job(obj: JsonObject) -> None:
    spec = child(obj, "spec")
    fill(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    template = child(child(spec, "jobTemplate"), "spec")
    _job(template)
    _default_template(template)


def _validate(obj: JsonObject) -> list[Cause]:
    spec = obj["spec"]
    found = _replica_problems(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if not selector:
        found.append(required("spec.selector"))
    elif not _selects(selector, labels):
        why = "`selector` does not match template `labels`"
        found.append(bad_value("spec.template.metadata.labels", labels, why))
    return found + _template_problems(spec, "spec.template.spec")


def _replica_problems(spec: JsonObject) -> list[Cause]:
    replicas = spec.get("replicas")
    if replicas is not None and replicas < 0:
        return [bad_value("spec.replicas", replicas, "must be greater than or equal to 0")]
    return []


def _template_problems(spec: JsonObject, where: str) -> list[Cause]:
    pod = spec["template"].get("spec")
    if not pod:
        return [required(f"{where}.containers")]
    named = [one.get("metadata") or {} for one in items(spec, "volumeClaimTemplates")]
    # A container may mount what a StatefulSet's claim templates will bring.
    claimed: list[JsonObject] = [{"name": one.get("name"), "emptyDir": {}} for one in named]
    return pod_spec_problems({**pod, "volumes": items(pod, "volumes") + claimed}, where)


def _selects(selector: JsonObject, labels: JsonObject) -> bool:
    wanted = selector.get("matchLabels", {} if "matchExpressions" in selector else selector) or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _validate_update(new: JsonObject, old: JsonObject) -> list[Cause]:
    before, after = old["spec"].get("selector"), new["spec"].get("selector")
    if before == after:
        return []
    return [bad_value("spec.selector", after, "field is immutable")]


def _prepare_job(job: JsonObject) -> None:
    """A job finds its pods by labels that nobody else can have."""
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector") or spec.get("selector"):
        return
    labels = child(child(child(spec, "template"), "metadata"), "labels")
    labels.update(dict.fromkeys(_JOB_LABELS, meta["uid"]))
    labels.update(dict.fromkeys(_JOB_NAMES, meta["name"]))
    spec["selector"] = {"matchLabels": {_JOB_LABELS[1]: meta["uid"]}}


def _validate_job(job: JsonObject) -> list[Cause]:
    return _job_problems(job["spec"], "spec")


def _job_problems(spec: JsonObject, where: str) -> list[Cause]:
    """A job's pods must be able to end, and an indexed job must know how many indexes it has."""
    found = []
    policy = (spec["template"].get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        why = 'valid values: "OnFailure", "Never"'
        found.append(required(f"{where}.template.spec.restartPolicy", why))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        why = "when completion mode is Indexed"
        found.append(required(f"{where}.completions", why))
    return found + _template_problems(spec, f"{where}.template.spec")


def _validate_cron_job(obj: JsonObject) -> list[Cause]:
    spec = obj["spec"]
    found = [] if spec.get("schedule") else [required("spec.schedule")]
    return found + _job_problems(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")


def _workload(fill_spec: FillSpec) -> Strategy:
    return Strategy(
        default=_defaults(fill_spec),
        validate=_validate,
        validate_update=_validate_update,
    )


def _controller(obj: JsonObject) -> None:
    spec = child(obj, "spec")
    _replica_set(spec)
    _default_template(spec)
    fill(spec, selector=dict((spec["template"].get("metadata") or {}).get("labels") or {}))


WORKLOADS = {
    "deployments.apps": _workload(_deployment),
    "replicasets.apps": _workload(_replica_set),
    "statefulsets.apps": _workload(_stateful_set),
    "daemonsets.apps": _workload(_daemon_set),
    "replicationcontrollers": Strategy(default=_controller, validate=_validate),
    "jobs.batch": Strategy(
        default=_defaults(_job),
        prepare_create=_prepare_job,
        validate=_validate_job,
        validate_update=_validate_update,
    ),
    "cronjobs.batch": Strategy(default=_default_cron_job, validate=_validate_cron_job),
}
