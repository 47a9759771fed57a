"""What the page asks, and the answers: from the reports that the commands of these names show.

Each is a plain function over a cluster that stands still, and may take seconds: they run in a
thread, one at a time, at a bounded pace. A page can also be had without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bayplan.autoscaler.offline import OfflinePlan
from bayplan.autoscaler.offline import StaticCluster as Planned
from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.base.errors import InputError
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.nodes import Node, NodeStatus
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.times import timestamp
from bayplan.nodegroups import TemplateNodeInfo
from bayplan.nodegroups.templates import csi_node_of
from bayplan.queues.survey import QueueView
from bayplan.reports.declared import declared_groups
from bayplan.reports.explain import explanation_data
from bayplan.reports.judgement import RulesComparison
from bayplan.reports.pending import explain_pods, held_by_queues, held_in, held_reason
from bayplan.reports.plan import PlanRequest, plan_next, total_cost
from bayplan.reports.queues import amounts, survey_queues
from bayplan.ui import texts
from bayplan.ui.picture.groups import GroupFacts
from bayplan.ui.tables import Row

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

MOST_STEPS = 200
"""So many steps, pods and nodes of a plan are told."""
MOST_NAMED = 50


@dataclass(frozen=True, slots=True)
class Still:
    """A cluster that stands still: a copy for whoever takes long."""

    objects: Sequence[KubeObject]
    profile: Profile
    time: datetime

    def snapshot(self) -> Snapshot:
        """The model of it, with claims to devices if they are there."""
        return Snapshot(self.objects, profile=self.profile)


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The queues, and the pods that they hold back."""

    rows: Sequence[Row] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    """By pod what its queue says."""


def _no_queues(_: Still) -> QueueAnswer:
    return QueueAnswer()


def _no_plan(_: Still) -> Row | None:
    return None


def _no_explanation(_: Snapshot, __: Still, ___: str) -> JsonValue:
    raise LookupError("nobody here explains pods")


@dataclass(frozen=True, slots=True)
class Answers:
    """Who answers what."""

    explain: Callable[[Snapshot, Still, str], JsonValue] = _no_explanation
    """Why a pod is where it is; LookupError if there is no such pod."""
    queues: Callable[[Still], QueueAnswer] = _no_queues
    plan: Callable[[Still], Row | None] = _no_plan
    """What an autoscaler would do next, as a row of `plans`; None if nobody can say."""
    groups: Callable[[], Iterable[GroupFacts]] = tuple
    """Groups that somebody has declared."""


def report_answers(rules: Profile, groups: Path | None = None) -> Answers:
    """Answers by these rules, and with the groups that a file declares; InputError if it cannot be
    used.
    """
    declared = declared_groups(groups)
    facts = tuple(_facts(one) for one in declared)
    return Answers(
        explain=lambda snapshot, still, pod: _explain(snapshot, still, pod, rules),
        queues=_queues,
        plan=lambda still: _plan(still, declared, rules),
        groups=lambda: facts,
    )


def _explain(snapshot: Snapshot, still: Still, name: str, rules: Profile) -> JsonValue:
    pod = snapshot.get(Pod, name)
    if pod is None:
        raise LookupError(f"there is no pod {texts.name(name)}")
    held = held_by_queues(list(still.objects))
    found = explain_pods(
        snapshot, [pod], RulesComparison(snapshot, None, rules.plugins, held), with_fixes=True
    )
    return explanation_data(found[0], held.get(name))


# -- queues ------------------------------------------------------------------------------------


def _queues(still: Still) -> QueueAnswer:
    objects = list(still.objects)
    if not any(isinstance(one, Queue | PodGroup) for one in objects):
        return QueueAnswer()
    found = survey_queues(objects)
    held = {pod: held_reason(one) for pod, one in held_in(found).items()}
    return QueueAnswer([_queue_row(view) for view in found.queues], held)


def _queue_row(view: QueueView) -> Row:
    node, quota, usage = view.node, view.quota, view.usage
    first = view.waiting[0] if view.waiting else None
    return [
        texts.identity(node.name),
        texts.identity(node.path[1]) if len(node.path) > 1 else "",
        texts.name(node.name),
        "broken" if node.broken else texts.name(node.queue.status.state or "Open"),
        node.queue.spec.weight,
        round(view.share, 4),
        amounts(quota.real_capability),
        amounts(usage.allocated),
        amounts(usage.reserved),
        amounts(usage.request),
        amounts(quota.deserved),
        amounts(quota.guarantee),
        sum(len(one.pods) for one in view.waiting),
        texts.name(first.group) if first is not None else "",
        texts.line(first.text) if first is not None else "",
        texts.line("; ".join(view.problems)),
    ]


# -- plans -------------------------------------------------------------------------------------


def _plan(still: Still, declared: tuple[Declaration, ...], rules: Profile) -> Row | None:
    """What an autoscaler would do next; None if there is nothing that it could know."""
    request = PlanRequest(declared or None)
    try:
        shown = asyncio.run(plan_next(Planned.of(still.objects, rules), request, still.time))
    except InputError:
        return None
    return _plan_row(shown, by_kinds=not declared)


def _plan_row(shown: OfflinePlan, *, by_kinds: bool) -> Row:
    plan = shown.plan
    steps: list[JsonValue] = [
        {
            "what": f"buy {one.count} of {texts.name(one.group)}",
            "group": texts.identity(one.group),
            "nodes": one.count,
            "pods": _named(pod for pods in one.nodes for pod in pods),
            "why": _for_whom(sum(len(pods) for pods in one.nodes)),
            "cost": one.cost,
        }
        for one in plan.scale_ups[:MOST_STEPS]
    ]
    alike: dict[str, list[str]] = {}
    for one in plan.pending:
        alike.setdefault(_why_pending(one.cause.value, one.by_group), []).append(one.pod)
    pending: list[JsonValue] = [
        {"pods": _named(pods), "why": why} for why, pods in islice(alike.items(), MOST_STEPS)
    ]
    removals: list[JsonValue] = [
        {"node": texts.identity(one.node), "why": texts.line(one.reason)}
        for one in plan.removals[:MOST_STEPS]
    ]
    kinds = "every kind of node that is there may grow, since no groups are declared"
    said = (plan.message, kinds if by_kinds else "", _blind(shown))
    note = "; ".join(one for one in said if one)
    made = timestamp(plan.time)
    cost = total_cost(shown)
    return ["next", "Next plan", made, steps, pending, removals, cost, texts.line(note)]


def _why_pending(cause: str, by_group: Mapping[str, tuple[str, ...]]) -> str:
    groups = islice(by_group.items(), MOST_NAMED)
    said = [f"{name}: {', '.join(reasons)}" for name, reasons in groups]
    return texts.line(f"{cause}: {'; '.join(said)}" if said else cause)


def _blind(shown: OfflinePlan) -> str:
    if shown.blind is None or shown.blind == shown.plan.bought:
        return ""
    return f"a planner that is blind to volumes would buy {shown.blind}"


def _facts(one: Declaration) -> GroupFacts:
    said = one.description
    node = Node(
        metadata=ObjectMeta(name=one.group, labels=dict(said.labels)),
        status=NodeStatus(allocatable=dict(said.allocatable or said.capacity)),
    )
    csi_node = csi_node_of(one.group, one.limits) if one.limits is not None else None
    return GroupFacts(
        one.group,
        "declared",
        min=one.min_size,
        max=one.max_size,
        price=one.price,
        selector=one.node_selector,
        template=TemplateNodeInfo(node, csi_node),
    )


def _named(pods: Iterable[str]) -> list[JsonValue]:
    return [texts.identity(pod) for pod in islice(pods, MOST_STEPS)]


def _for_whom(count: int) -> str:
    return (
        "1 pod fits no node that is there"
        if count == 1
        else f"{count} pods fit no node that is there"
    )
