"""Pods that wait, by the true cause of it, those alike together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.base.durations import format_duration
from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import (
    CheckKind,
    Example,
    Finding,
    Severity,
    found,
    plural,
    shortened,
    who,
)
from bayplan.fit.explanation.waiting import QUOTED, WaitingAlike, waiting_pods
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.nodes import Node
from bayplan.kube.pods import POD_SCHEDULED, Pod

EXPLAIN = "bayplan explain NAMESPACE/POD says what each node lacks, and the nearest fixes."


def _kind(
    code: str, what: str, why: str, advice: str, severity: Severity = Severity.WARNING
) -> CheckKind:
    return CheckKind(code, severity, what, why, advice, (Node, Pod))


BY_CAUSE = {
    Cause.RESOURCES: _kind(
        "PodsWaitForResources",
        "pods wait for cpu, memory or other resources of nodes",
        "They run when others end, or when nodes are added that they fit.",
        f"{EXPLAIN} bayplan plan says which nodes would do.",
    ),
    Cause.VOLUMES: _kind(
        "PodsWaitForVolumes",
        "pods wait for their volumes: places to attach, a driver, claims that are not bound",
        "More cpu and memory would not help them.",
        f"{EXPLAIN} bayplan volumes shows the places that are taken.",
    ),
    Cause.AFFINITY: _kind(
        "PodsWaitForAffinity",
        "pods wait for nodes that their affinity or spread allows",
        "No node that has room is one that they accept.",
        EXPLAIN,
    ),
    Cause.TAINTS: _kind(
        "PodsWaitForTaints",
        "pods wait since the nodes that are left have taints that they do not tolerate",
        "They wait until nodes without these taints come, or are uncordoned.",
        f"{EXPLAIN} kubectl uncordon NODE if a node was cordoned by mistake.",
    ),
    Cause.DEVICES: _kind(
        "PodsWaitForDevices",
        "pods wait for claims to devices",
        "They start when their ResourceClaims are made and allocated.",
        "kubectl get resourceclaims -A; " + EXPLAIN,
    ),
    Cause.SCHEDULER: _kind(
        "PodsWaitForScheduler",
        "pods fit a node, and their scheduler has not placed them for a while",
        "Nobody serves that schedulerName, the scheduler is down or far behind, or it goes by rules"
        " that are not known here.",
        "See that a scheduler of that name runs: kubectl get leases -A. If it is bayplan scheduler,"
        " which has rules of its own, look with --as bayplan.",
    ),
    Cause.GATE: _kind(
        "PodsWaitForGate",
        "pods have scheduling gates that somebody has to take off",
        "No scheduler looks at them until then.",
        "See that whoever put the gate there is at work.",
        Severity.INFO,
    ),
    Cause.QUEUE: _kind(
        "PodsWaitForQueue",
        "pods wait for their queue",
        "They go on when quota is free; nothing is bought for them meanwhile.",
        "bayplan queues shows quota, positions, and what each group waits for.",
        Severity.INFO,
    ),
    Cause.OTHER: _kind(
        "PodsWait",
        "pods wait for something else, such as a port of the host",
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
    "pods have waited for less than the time that --grace gives them",
    "Whoever places them or buys nodes for them may be about to.",
    "Look again later, or with --grace 0s.",
    (Pod,),
)
KINDS = (*dict.fromkeys(BY_CAUSE.values()), BRIEFLY)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """What pods wait for that are not new, in the order in which a scheduler takes them."""
    pods = waiting_pods(subject.snapshot)
    told: defaultdict[tuple[Cause, str, str], list[WaitingAlike]] = defaultdict(list)
    for one in subject.waiting:
        told[_key(one, subject)].append(one)
    for (cause, about, text), some in told.items():
        pods_told = (key for one in some for key in one.pods if subject.tells_of(key))
        names = [key for key in pods_told if _is_old(key, subject)]
        if names:
            yield _finding(cause, about, text, names)
    told_of = (pod for pod in pods if subject.tells_of(pod.key))
    young = [Example(pod.key) for pod in told_of if not _is_old(pod.key, subject)]
    if young:
        least = format_duration(subject.grace.total_seconds())
        text = f"{plural(len(young), 'pod')} waiting for less than {least}"
        yield found(BRIEFLY, "Pod", young, text)


def _key(one: WaitingAlike, subject: CheckedCluster) -> tuple[Cause, str, str]:
    """Pods that are told together: those with the same cause in the same words."""
    why = one.waiting
    if why.cause is Cause.SCHEDULER:
        pod = subject.pods[one.pods[0]]
        name, said = pod.spec.scheduler_name, _own_word(pod)
        text = f"{name}, though there is room"
        return why.cause, name, f"{text}; it says itself: {said}" if said else text
    text = shortened(QUOTED.sub("…", why.text))
    return why.cause, ", ".join(why.drivers), text


def _own_word(pod: Pod) -> str:
    """What a pod's scheduler says of it, which may go by other rules, or have been long ago."""
    for one in pod.status.conditions:
        if one.type == POD_SCHEDULED and one.reason == "Unschedulable":
            return shortened(one.message)
    return ""


def _is_old(key: str, subject: CheckedCluster) -> bool:
    return not subject.is_young(subject.pods[key].metadata.creation_timestamp)


def _finding(cause: Cause, about: str, text: str, names: list[str]) -> Finding:
    wait = who(len(names), "pod", "wait")
    of = f" ({about})" if cause is Cause.VOLUMES and about else ""
    kind, first = BY_CAUSE[cause], min(names)
    advice = kind.advice.replace("NAMESPACE/POD", first)
    examples = (Example(name) for name in names)
    line = f"{wait} for {text}" if cause is Cause.SCHEDULER else f"{wait}: {text}{of}"
    return found(kind, "Pod", examples, line, about=about, advice=advice)
