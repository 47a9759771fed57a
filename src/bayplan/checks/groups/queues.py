"""Queues that take no work, or can never admit what waits in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, who
from bayplan.kube.nodes import Node
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.resources import PODS
from bayplan.queues import NOTHING, Resources, Why
from bayplan.queues.resources import AmountError, node_amounts, read_amounts, write_amount
from bayplan.queues.survey import QueueView, Survey, WaitingGroup

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
    "a queue takes no work: its parents lead nowhere or in a circle, or its amounts cannot be read",
    "It and the queues below it admit nothing.",
    "kubectl edit queue NAME",
    (Queue,),
)
CONTRADICTION = CheckKind(
    "QueueContradiction",
    Severity.WARNING,
    "a queue's amounts contradict each other, or those of the queues below it",
    "Guarantee goes before deserved, and capability before both: somebody gets less than is"
    " written.",
    "kubectl edit queue NAME",
    (Queue,),
)
NEVER = CheckKind(
    "QueueNeverAdmits",
    Severity.ERROR,
    "a group asks for more than its queue may ever have, even when it is empty",
    "The group waits for ever; in a fifo queue, so does everybody behind it.",
    "Raise spec.capability of the queue (or of the one above it that is in the way), or make the"
    " group smaller. bayplan queues -o wide shows both.",
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
    "groups are in a queue that has queues below it",
    "Only the lowest queues take groups: these are never admitted.",
    "Name one of the queues below it in spec.queue of the PodGroup.",
    (Queue,),
)
NO_GROUP = CheckKind(
    "PodGroupMissing",
    Severity.ERROR,
    "pods name a PodGroup that does not exist",
    "They are never admitted.",
    "Create the PodGroup, or take the annotation off the pods' template.",
    (PodGroup,),
)
GUARANTEES = CheckKind(
    "GuaranteesBeyondNodes",
    Severity.WARNING,
    "queues are guaranteed more than all nodes have together",
    "Not every queue can have what it was promised unless nodes are added.",
    "Lower the guarantees, or see that the autoscaler's groups can grow so far.",
    (Queue, Node),
)
KINDS = (UNKNOWN, BROKEN, CONTRADICTION, NEVER, CLOSED, NOT_A_LEAF, NO_GROUP, GUARANTEES)
BY_REASON = {
    Why.UNKNOWN_QUEUE: (UNKNOWN, "in a queue that does not exist"),
    Why.CLOSED: (CLOSED, "in a queue that is not open"),
    Why.NOT_A_LEAF: (NOT_A_LEAF, "in a queue that has queues below it"),
    Why.BAD_GROUP: (NO_GROUP, "whose PodGroup does not exist"),
}


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """What the survey of the queues tells; nothing where there are none."""
    survey = subject.queues
    if survey is None:
        return
    for view in survey.queues:
        yield from _of_queue(view)
    yield from _of_groups(survey, subject)
    yield from _guarantees(survey, subject)


def _of_queue(view: QueueView) -> Iterator[Finding]:
    name, problems = view.node.name, sorted(set(view.problems))
    if view.node.broken:
        text = f"queue {name} takes no work: {view.node.broken}"
        yield found(BROKEN, "Queue", [Example(name)], text, about=name, advice=_edit(name))
    elif problems:
        text = f"queue {name}: {'; '.join(problems)}"
        yield found(CONTRADICTION, "Queue", [Example(name)], text, about=name, advice=_edit(name))


def _edit(name: str) -> str:
    return f"kubectl edit queue {name}"


def _of_groups(survey: Survey, subject: CheckedCluster) -> Iterator[Finding]:
    quotas = {view.node.name: view.quota.real_capability for view in survey.queues}
    refused: defaultdict[tuple[Why, str], list[WaitingGroup]] = defaultdict(list)
    never: defaultdict[str, list[Example]] = defaultdict(list)
    least = _least(subject)
    for one in (one for one in survey.waiting() if subject.tells_of(one.group)):
        if one.why in BY_REASON:
            refused[one.why, one.queue].append(one)
        elif one.queue in quotas:
            asks = one.asks.most(least.get(one.group, NOTHING))
            if told := _too_much(asks, quotas[one.queue]):
                never[one.queue].append(Example(one.group, f"{told}{_such_as(one)}"))
    for (why, queue), groups in refused.items():
        kind, where = BY_REASON[why]
        text = f"{who(len(groups), 'group', 'wait')} {where}: {queue}"
        yield found(kind, "PodGroup", map(_example, groups), text, about=queue)
    for queue, examples in never.items():
        text = f"{who(len(examples), 'group', 'wait')} for more than queue {queue} may ever have"
        yield found(NEVER, "PodGroup", examples, text, about=queue)


def _example(group: WaitingGroup) -> Example:
    return Example(group.group, plural(len(group.pods), "pod"))


def _least(subject: CheckedCluster) -> dict[str, Resources]:
    """What groups that have not begun want to see free before they do."""
    found_by_key: dict[str, Resources] = {}
    for one in subject.all(PodGroup):
        if one.spec.min_resources and one.status.phase in {"", "Pending"}:
            try:
                found_by_key[one.key] = read_amounts(one.spec.min_resources)
            except AmountError:
                continue
    return found_by_key


def _too_much(asks: Resources, quota: Resources) -> str:
    """What is asked for beyond a quota; empty if nothing is."""
    return ", ".join(
        f"{name} {write_amount(name, asks[name])} of {write_amount(name, quota[name])}"
        for name in sorted(asks.over(quota, asks))
    )


def _such_as(group: WaitingGroup) -> str:
    """A pod of a group, whose own name may say little."""
    return f" ({plural(len(group.pods), 'pod')} such as {group.pods[0]})" if group.pods else ""


def _guarantees(survey: Survey, subject: CheckedCluster) -> Iterator[Finding]:
    promised = sum((one.quota.guarantee for one in survey.queues if one.depth == 1), NOTHING)
    there = sum(map(node_amounts, subject.all(Node)), NOTHING)
    over = sorted(name for name in promised.over(there, promised) if name != PODS)
    if over:
        told = _too_much(Resources({name: promised[name] for name in over}), there)
        who = [
            Example(one.node.name)
            for one in survey.queues
            if one.depth == 1 and any(one.quota.guarantee[name] for name in over)
        ]
        yield found(GUARANTEES, "Queue", who, f"queues are guaranteed more than there is: {told}")
