"""Why a pod is unschedulable, and why a new node of a group would not help it.

The cause is that of explanations (`bayplan.fit.explanation.cause`), one for each plugin. It is
computed before other pending pods are placed: among equal nodes a hash of names decides where those
go, which must not change this pod's cause. Only for a pod that would fit then it is computed with
the others placed. A new node of a template has nothing but DaemonSet pods, so its refusal does not
depend on the order of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.plan import NoScaleUpInfo
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Refusal, Snapshot
from bayplan.fit.batches import NodeTemplate, PodEquivalenceGroup, add_node, new_names
from bayplan.fit.explanation.cause import refusal_reason
from bayplan.fit.explanation.trial import SnapshotTrial, details_of
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.plugins.registry import refuses_for_good
from bayplan.kube.pods import Pod

MAX_EXPLAINED = 2000
"""How many pairs of equivalence class and group are explained one by one."""
MAX_TEMPLATES = 20
"""On how many templates causes are computed in a cluster without nodes."""


@dataclass(frozen=True, slots=True)
class GroupRefusal:
    """Why a new node of a group would not help a pod."""

    reasons: tuple[str, ...]
    details: tuple[str, ...] = ()
    is_permanent: bool = False


PendingCause = tuple[Cause, str]
"""The cause of a pending pod and, for volumes, the CSI driver."""


def causes_before(
    snapshot: Snapshot, groups: Iterable[PodEquivalenceGroup], templates: Sequence[NodeTemplate]
) -> dict[str, PendingCause]:
    """Return the cause by pod before other pending pods are placed; pods that fit are left out.

    In a cluster without nodes it is the cause on a new node of each template.
    """
    if len(snapshot.cluster.slots):
        return _causes(snapshot, groups)
    with snapshot.fork():
        for template in templates[:MAX_TEMPLATES]:
            add_node(snapshot, template, next(new_names(snapshot, template)))
        return _causes(snapshot, groups)


def _causes(snapshot: Snapshot, groups: Iterable[PodEquivalenceGroup]) -> dict[str, PendingCause]:
    refused = ((group, cause_of(snapshot, group.pods[0])) for group in groups)
    return {pod.key: cause for group, cause in refused if cause for pod in group.pods}


def cause_of(snapshot: Snapshot, pod: Pod) -> PendingCause | None:
    """Return why a pod fits no existing node; None if it fits one."""
    if not isinstance(snapshot.evaluation(pod), Refusal) and snapshot.decide(pod).node is not None:
        return None
    waiting = refusal_reason(snapshot, pod)
    return None if waiting is None else (waiting.cause, min(waiting.drivers, default=""))


def explain_unschedulable(
    snapshot: Snapshot,
    left: Sequence[tuple[PodEquivalenceGroup, PendingCause]],
    views: Mapping[str, NodeGroupView],
    refused: Mapping[str, str],
) -> list[NoScaleUpInfo]:
    """Explain for each unschedulable pod why no group would help it; the reason of a skipped group
    is given only if its nodes would have helped.
    """
    explained = [group for group, _ in left][: max(1, MAX_EXPLAINED // max(1, len(views)))]
    answers: list[dict[str, GroupRefusal]] = [{} for _ in left]
    for name, view in sorted(views.items()):
        found = _refusals(snapshot, view, explained)
        for number in range(len(left)):
            refusals = found[number] if number < len(found) else None
            answers[number][name] = refusals or GroupRefusal(
                (refused.get(name) or MAX_NODES_TOO_FEW,)
            )
    return [
        one
        for (group, cause), refusals in zip(left, answers, strict=True)
        for one in _unschedulable_pods(group, cause, refusals)
    ]


MAX_NODES_TOO_FEW = "would not help with as many nodes as it may add"


def _refusals(
    snapshot: Snapshot, view: NodeGroupView, left: Iterable[PodEquivalenceGroup]
) -> list[GroupRefusal | None]:
    """Return a new node's refusal of each equivalence class; None if the pods fit."""
    if view.template is None:
        return []
    with snapshot.fork():
        name = next(new_names(snapshot, view.template))
        add_node(snapshot, view.template, name)
        return [_refusal(snapshot, group, name) for group in left]


def _refusal(snapshot: Snapshot, group: PodEquivalenceGroup, name: str) -> GroupRefusal | None:
    if group.refusal is not None:
        return GroupRefusal(group.refusal.reasons, is_permanent=False)
    pod = group.pods[0]
    refusal = snapshot.refusal(pod, name)
    if refusal is None:
        return None
    details = details_of(SnapshotTrial(snapshot, pod, name, refusal))
    return GroupRefusal(refusal.reasons, details, refuses_for_good(refusal.plugin))


def _unschedulable_pods(
    group: PodEquivalenceGroup, why: PendingCause, refusals: Mapping[str, GroupRefusal]
) -> Iterable[NoScaleUpInfo]:
    by_group = {name: one.reasons for name, one in refusals.items()}
    details = {name: one.details for name, one in refusals.items() if one.details}
    cause, driver = why
    never = all(one.is_permanent for one in refusals.values())
    for pod in group.pods:
        yield NoScaleUpInfo(pod.key, cause, by_group, details, never, driver=driver)
