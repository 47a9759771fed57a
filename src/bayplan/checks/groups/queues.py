"""Queues that admit nothing, or can never admit the groups that wait in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    clause,
    make_finding,
    plural,
)
from bayplan.kube.nodes import Node
from bayplan.kube.resources import PODS
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.queues import NOTHING, Resources, WaitCode
from bayplan.queues.queue_snapshot import QueueSnapshot, QueueView, WaitingGroup
from bayplan.queues.resources import AmountError, node_amounts, read_amounts, write_amount

UNKNOWN = CheckKind(
    "QueueUnknown",
    Severity.ERROR,
    "groups name a queue that does not exist",
    "Their pods are never admitted.",
    "Create the queue, or correct spec.queue of the PodGroup (or the pod's annotation).",
    (Queue,),
)
BROKEN = CheckKind(
    "QueueBroken",
    Severity.ERROR,
    "a queue is invalid: a parent is missing or they form a cycle, or its amounts cannot be parsed",
    "It and the queues below it admit nothing.",
    "kubectl edit queue NAME",
    (Queue,),
)
CONTRADICTION = CheckKind(
    "QueueContradiction",
    Severity.WARNING,
    "a queue's amounts contradict each other, or those of the queues below it",
    "Capability takes precedence over guarantee, and guarantee over deserved: a queue gets less"
    " than is configured.",
    "kubectl edit queue NAME",
    (Queue,),
)
NEVER = CheckKind(
    "QueueNeverAdmits",
    Severity.ERROR,
    "a group requests more than the capability of its queue, even if the queue is empty",
    "The group waits forever; in a fifo queue, so do all groups behind it.",
    "Raise spec.capability of the queue (or of the parent that limits it), or make the group"
    " smaller. bayplan queues -o wide shows both.",
    (Queue, PodGroup),
)
CLOSED = CheckKind(
    "QueueClosedWithWaiting",
    Severity.WARNING,
    "groups wait in a queue that is not open",
    "They are not admitted until it is open again.",
    "Open the queue (status.state Open, as vcctl queue operate --action open does), or move the"
    " groups to another.",
    (Queue,),
)
NOT_A_LEAF = CheckKind(
    "QueueNotALeaf",
    Severity.ERROR,
    "groups are in a queue that has child queues",
    "Only leaf queues admit groups: these are never admitted.",
    "Set spec.queue of the PodGroup to one of the child queues.",
    (Queue,),
)
NO_GROUP = CheckKind(
    "PodGroupMissing",
    Severity.ERROR,
    "pods name a PodGroup that does not exist",
    "They are never admitted.",
    "Create the PodGroup, or remove the annotation from the pods' template.",
    (PodGroup,),
)
GUARANTEES = CheckKind(
    "GuaranteesBeyondNodes",
    Severity.WARNING,
    "the guarantees of queues exceed the capacity of all nodes",
    "Not every queue can get its guarantee unless nodes are added.",
    "Lower the guarantees, or make sure that the node groups can grow enough.",
    (Queue, Node),
)
KINDS = (UNKNOWN, BROKEN, CONTRADICTION, NEVER, CLOSED, NOT_A_LEAF, NO_GROUP, GUARANTEES)
BY_REASON = {
    WaitCode.UNKNOWN_QUEUE: (UNKNOWN, "in a queue that does not exist"),
    WaitCode.CLOSED: (CLOSED, "in a queue that is not open"),
    WaitCode.NOT_A_LEAF: (NOT_A_LEAF, "in a queue that has child queues"),
    WaitCode.BAD_GROUP: (NO_GROUP, "whose PodGroup does not exist"),
}


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about queues and the groups that wait in them."""
    snapshot = cluster.queues
    if snapshot is None:
        return
    for view in snapshot.queues:
        yield from _of_queue(view)
    yield from _of_groups(snapshot, cluster)
    yield from _guarantees(snapshot, cluster)


def _of_queue(view: QueueView) -> Iterator[Finding]:
    name, problems = view.node.name, sorted(set(view.problems))
    if view.node.broken:
        text = f"queue {name} is invalid: {view.node.broken}"
        yield make_finding(BROKEN, "Queue", [Example(name)], text, about=name, advice=_edit(name))
    elif problems:
        text = f"queue {name}: {'; '.join(problems)}"
        yield make_finding(
            CONTRADICTION, "Queue", [Example(name)], text, about=name, advice=_edit(name)
        )


def _edit(name: str) -> str:
    return f"kubectl edit queue {name}"


def _of_groups(snapshot: QueueSnapshot, cluster: CheckedCluster) -> Iterator[Finding]:
    quotas = {view.node.name: view.quota.real_capability for view in snapshot.queues}
    refused: defaultdict[tuple[WaitCode, str], list[WaitingGroup]] = defaultdict(list)
    never: defaultdict[str, list[Example]] = defaultdict(list)
    least = _least(cluster)
    for one in (one for one in snapshot.waiting() if cluster.reports(one.group)):
        if one.code in BY_REASON:
            refused[one.code, one.queue].append(one)
        elif one.queue in quotas:
            asks = one.request.most(least.get(one.group, NOTHING))
            if excess := _excess(asks, quotas[one.queue]):
                never[one.queue].append(Example(one.group, f"{excess}{_such_as(one)}"))
    for (why, queue), groups in refused.items():
        kind, where = BY_REASON[why]
        text = f"{clause(len(groups), 'group', 'wait')} {where}: {queue}"
        yield make_finding(kind, "PodGroup", map(_example, groups), text, about=queue)
    for queue, examples in never.items():
        request = clause(len(examples), "group", "request")
        text = f"{request} more than queue {queue} can ever have"
        yield make_finding(NEVER, "PodGroup", examples, text, about=queue)


def _example(group: WaitingGroup) -> Example:
    return Example(group.group, plural(len(group.pods), "pod"))


def _least(cluster: CheckedCluster) -> dict[str, Resources]:
    """Return the minResources of groups that have not started, by group."""
    found_by_key: dict[str, Resources] = {}
    for one in cluster.all(PodGroup):
        if one.spec.min_resources and one.status.phase in {"", "Pending"}:
            try:
                found_by_key[one.key] = read_amounts(one.spec.min_resources)
            except AmountError:
                continue
    return found_by_key


def _excess(asks: Resources, quota: Resources) -> str:
    """Return the requests that exceed a quota; empty if none does."""
    return ", ".join(
        f"{name} {write_amount(name, asks[name])} of {write_amount(name, quota[name])}"
        for name in sorted(asks.over(quota, asks))
    )


def _such_as(group: WaitingGroup) -> str:
    """Return the number of pods and one of them, since group names are often generated."""
    return f" ({plural(len(group.pods), 'pod')} such as {group.pods[0]})" if group.pods else ""


def _guarantees(snapshot: QueueSnapshot, cluster: CheckedCluster) -> Iterator[Finding]:
    guaranteed = sum((one.quota.guarantee for one in snapshot.queues if one.depth == 1), NOTHING)
    capacity = sum(map(node_amounts, cluster.all(Node)), NOTHING)
    over = sorted(name for name in guaranteed.over(capacity, guaranteed) if name != PODS)
    if over:
        excess = _excess(Resources({name: guaranteed[name] for name in over}), capacity)
        queues = [
            Example(one.node.name)
            for one in snapshot.queues
            if one.depth == 1 and any(one.quota.guarantee[name] for name in over)
        ]
        text = f"the guarantees of queues exceed the capacity of all nodes: {excess}"
        yield make_finding(GUARANTEES, "Queue", queues, text)
