"""Pending pods by cause, equivalent pods together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.base.durations import format_duration
from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    clause,
    make_finding,
    plural,
    shortened,
)
from bayplan.fit.explanation.cause import QUOTED, PendingGroup, list_pending_pods
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.nodes import Node
from bayplan.kube.pods import POD_SCHEDULED, Pod

EXPLAIN = "bayplan explain NAMESPACE/POD shows what each node lacks, and possible fixes."


def _kind(
    code: str, what: str, why: str, advice: str, severity: Severity = Severity.WARNING
) -> CheckKind:
    return CheckKind(code, severity, what, why, advice, (Node, Pod))


BY_CAUSE = {
    Cause.RESOURCES: _kind(
        "PodsWaitForResources",
        "pods wait for cpu, memory or other resources of nodes",
        "They are scheduled when other pods end, or when nodes are added on which they fit.",
        f"{EXPLAIN} bayplan plan shows which nodes to add.",
    ),
    Cause.VOLUMES: _kind(
        "PodsWaitForVolumes",
        "pods wait for their volumes: attach slots, a CSI driver, or unbound claims",
        "More cpu and memory would not help them.",
        f"{EXPLAIN} bayplan volumes shows the attachments in use and the limits.",
    ),
    Cause.AFFINITY: _kind(
        "PodsWaitForAffinity",
        "pods wait for nodes that their affinity or spread allows",
        "No node that they may use has enough free capacity.",
        EXPLAIN,
    ),
    Cause.TAINTS: _kind(
        "PodsWaitForTaints",
        "pods wait because the remaining nodes have taints that they do not tolerate",
        "They wait until nodes without these taints are added, or nodes are uncordoned.",
        f"{EXPLAIN} kubectl uncordon NODE if a node was cordoned by mistake.",
    ),
    Cause.DEVICES: _kind(
        "PodsWaitForDevices",
        "pods wait for devices",
        "They are scheduled when their ResourceClaims exist and can be allocated.",
        "kubectl get resourceclaims -A; " + EXPLAIN,
    ),
    Cause.SCHEDULER: _kind(
        "PodsWaitForScheduler",
        "pods fit on a node, but their scheduler has not scheduled them for a while",
        "No scheduler serves that schedulerName, or it is down or far behind, or it has rules that"
        " are not known here.",
        "Check that a scheduler of that name runs: kubectl get leases -A. If it is bayplan"
        " scheduler, check with --as bayplan.",
    ),
    Cause.GATE: _kind(
        "PodsWaitForGate",
        "pods have scheduling gates",
        "No scheduler schedules them until the gates are removed.",
        "Check that the controller that adds and removes the gate is running.",
        Severity.INFO,
    ),
    Cause.QUEUE: _kind(
        "PodsWaitForQueue",
        "pods wait for their queue",
        "They are admitted when quota is free; until then no nodes are added for them.",
        "bayplan queues shows quota, positions, and what each group waits for.",
        Severity.INFO,
    ),
    Cause.OTHER: _kind(
        "PodsWait",
        "pods wait for something else, such as a host port",
        "They stay Pending until that changes.",
        EXPLAIN,
    ),
}
BY_CAUSE |= {
    Cause.NODES: BY_CAUSE[Cause.RESOURCES],
    Cause.SPREAD: BY_CAUSE[Cause.AFFINITY],
    Cause.PORTS: BY_CAUSE[Cause.OTHER],
}
"""Finer causes have the code of a coarser one."""
BRIEFLY = CheckKind(
    "PodsWaitBriefly",
    Severity.INFO,
    "pods have been pending for less than --grace",
    "The scheduler or the autoscaler may be about to act.",
    "Check again later, or with --grace 0s.",
    (Pod,),
)
KINDS = (*dict.fromkeys(BY_CAUSE.values()), BRIEFLY)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about pending pods by cause, then one about those within the grace period."""
    pods = list_pending_pods(cluster.snapshot)
    by_key: defaultdict[tuple[Cause, str, str], list[PendingGroup]] = defaultdict(list)
    for one in cluster.waiting:
        by_key[_key(one, cluster)].append(one)
    for (cause, about, text), some in by_key.items():
        reported = (key for one in some for key in one.pods if cluster.reports(key))
        names = [key for key in reported if _is_old(key, cluster)]
        if names:
            yield _finding(cause, about, text, names)
    all_reported = (pod for pod in pods if cluster.reports(pod.key))
    young = [Example(pod.key) for pod in all_reported if not _is_old(pod.key, cluster)]
    if young:
        least = format_duration(cluster.grace.total_seconds())
        text = f"{plural(len(young), 'pod')} pending for less than {least}"
        yield make_finding(BRIEFLY, "Pod", young, text)


def _key(one: PendingGroup, cluster: CheckedCluster) -> tuple[Cause, str, str]:
    """Return cause, cluster and text, by which pods are reported together."""
    why = one.reason
    if why.cause is Cause.SCHEDULER:
        pod = cluster.pods[one.pods[0]]
        name, message = pod.spec.scheduler_name, _condition_message(pod)
        text = f"scheduler {name}, although a fitting node exists"
        return why.cause, name, f"{text}; its message: {message}" if message else text
    text = shortened(QUOTED.sub("…", why.text))
    return why.cause, ", ".join(why.drivers), text


def _condition_message(pod: Pod) -> str:
    """Return the message of the pod's own scheduler, which may have other rules or be outdated."""
    for one in pod.status.conditions:
        if one.type == POD_SCHEDULED and one.reason == "Unschedulable":
            return shortened(one.message)
    return ""


def _is_old(key: str, cluster: CheckedCluster) -> bool:
    return not cluster.is_young(cluster.pods[key].metadata.creation_timestamp)


def _finding(cause: Cause, about: str, text: str, names: list[str]) -> Finding:
    wait = clause(len(names), "pod", "wait")
    of = f" ({about})" if cause is Cause.VOLUMES and about else ""
    kind, first = BY_CAUSE[cause], min(names)
    advice = kind.advice.replace("NAMESPACE/POD", first)
    examples = (Example(name) for name in names)
    line = f"{wait} for {text}" if cause is Cause.SCHEDULER else f"{wait}: {text}{of}"
    return make_finding(kind, "Pod", examples, line, about=about, advice=advice)
