"""Explanations, queues and plans for the page, from the reports that the commands show.

Each is a plain function over a copy of the cluster and may take seconds: they run in a thread, one
at a time, at a bounded rate. A page works without them, too.
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
from bayplan.kube.times import timestamp
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.nodegroups import TemplateNodeInfo
from bayplan.nodegroups.templates import build_csi_node
from bayplan.queues.queue_snapshot import QueueView
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

MAX_STEPS = 200
"""Maximum number of steps, pods and nodes of a plan that are shown."""
MAX_NAMED = 50


@dataclass(frozen=True, slots=True)
class FrozenCluster:
    """A copy of the cluster at one time, for work that takes long."""

    objects: Sequence[KubeObject]
    profile: Profile
    time: datetime

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the cluster."""
        return Snapshot(self.objects, profile=self.profile)


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The queues, and the pods that they do not admit yet."""

    rows: Sequence[Row] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    """By pod the reason of its queue."""


def _no_queues(_: FrozenCluster) -> QueueAnswer:
    return QueueAnswer()


def _no_plan(_: FrozenCluster) -> Row | None:
    return None


def _no_explanation(_: Snapshot, __: FrozenCluster, ___: str) -> JsonValue:
    raise LookupError("explanations are not available here")


@dataclass(frozen=True, slots=True)
class PageAnswers:
    """The functions behind the page."""

    explain: Callable[[Snapshot, FrozenCluster, str], JsonValue] = _no_explanation
    """Explains a pod; raises LookupError if it does not exist."""
    queues: Callable[[FrozenCluster], QueueAnswer] = _no_queues
    plan: Callable[[FrozenCluster], Row | None] = _no_plan
    """Returns the next plan of an autoscaler as a row of `plans`; None if it is unknown."""
    groups: Callable[[], Iterable[GroupFacts]] = tuple
    """Returns the declared node groups."""


def report_answers(rules: Profile, groups: Path | None = None) -> PageAnswers:
    """Return answers for a profile, with the node groups that a file declares.

    Raise InputError if the file is not valid.
    """
    declared = declared_groups(groups)
    facts = tuple(_facts(one) for one in declared)
    return PageAnswers(
        explain=lambda snapshot, still, pod: _explain(snapshot, still, pod, rules),
        queues=_queues,
        plan=lambda still: _plan(still, declared, rules),
        groups=lambda: facts,
    )


def _explain(snapshot: Snapshot, still: FrozenCluster, name: str, rules: Profile) -> JsonValue:
    pod = snapshot.get(Pod, name)
    if pod is None:
        raise LookupError(f"pod {texts.name(name)} does not exist")
    held = held_by_queues(list(still.objects))
    found = explain_pods(
        snapshot, [pod], RulesComparison(snapshot, None, rules.plugins, held), with_fixes=True
    )
    return explanation_data(found[0], held.get(name))


# -- queues ------------------------------------------------------------------------------------


def _queues(still: FrozenCluster) -> QueueAnswer:
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


def _plan(still: FrozenCluster, declared: tuple[Declaration, ...], rules: Profile) -> Row | None:
    """Return the next plan of an autoscaler; None if it cannot be computed."""
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
            "what": "scale up",
            "group": texts.identity(one.group),
            "nodes": one.count,
            "pods": _named(pod for pods in one.nodes for pod in pods),
            "why": _pods_text(sum(len(pods) for pods in one.nodes)),
            "cost": one.cost,
        }
        for one in plan.scale_ups[:MAX_STEPS]
    ]
    by_reason: dict[str, list[str]] = {}
    for one in plan.pending:
        by_reason.setdefault(_pending_reason(one.cause.value, one.by_group), []).append(one.pod)
    pending: list[JsonValue] = [
        {"pods": _named(pods), "why": why} for why, pods in islice(by_reason.items(), MAX_STEPS)
    ]
    removals: list[JsonValue] = [
        {"node": texts.identity(one.node), "why": texts.line(one.reason)}
        for one in plan.removals[:MAX_STEPS]
    ]
    kinds = "no node groups are declared: nodes like the existing ones may be added"
    notes = (plan.message, kinds if by_kinds else "", _blind_note(shown))
    note = "; ".join(one for one in notes if one)
    made = timestamp(plan.time)
    cost = total_cost(shown)
    return ["next", "Next plan", made, steps, pending, removals, cost, texts.line(note)]


def _pending_reason(cause: str, by_group: Mapping[str, tuple[str, ...]]) -> str:
    groups = islice(by_group.items(), MAX_NAMED)
    reasons_by_group = [f"{name}: {', '.join(reasons)}" for name, reasons in groups]
    return texts.line(f"{cause}: {'; '.join(reasons_by_group)}" if reasons_by_group else cause)


def _blind_note(shown: OfflinePlan) -> str:
    if (
        shown.nodes_without_attach_limits is None
        or shown.nodes_without_attach_limits == shown.plan.new_nodes
    ):
        return ""
    return f"without volumes, a planner would add {shown.nodes_without_attach_limits} nodes"


def _facts(one: Declaration) -> GroupFacts:
    description = one.description
    node = Node(
        metadata=ObjectMeta(name=one.group, labels=dict(description.labels)),
        status=NodeStatus(allocatable=dict(description.allocatable or description.capacity)),
    )
    csi_node = build_csi_node(one.group, one.limits) if one.limits is not None else None
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
    return [texts.identity(pod) for pod in islice(pods, MAX_STEPS)]


def _pods_text(count: int) -> str:
    return "1 pod fits no existing node" if count == 1 else f"{count} pods fit no existing node"
