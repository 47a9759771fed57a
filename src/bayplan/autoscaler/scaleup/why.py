"""Why a pod waits, and why a new node of a group would not help it.

Why it waits is told as in explanations (`bayplan.fit.explanation.cause`), by one cause for each
plugin. Nodes are asked as they are before other pending pods take their room: of equal nodes,
a hash of names decides where those go, and that must not decide what is said of this one. Only a
pod that would fit then is told what keeps it off the nodes with the others on them. A new node of a
template is asked with nothing on it but daemons, so what it says is no matter of who came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.plan import LeftPending
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Refusal, Snapshot
from bayplan.fit.batches import Group, add_node, new_names
from bayplan.fit.explanation.cause import why_no_node
from bayplan.fit.explanation.details import details_of
from bayplan.fit.explanation.trial import SnapshotTrial
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.plugins.registry import refuses_for_good
from bayplan.kube.pods import Pod

MOST_ASKED = 2000
"""So many likenesses times groups are explained one by one."""


@dataclass(frozen=True, slots=True)
class NoHelp:
    """Why a new node of a group does not help a pod."""

    reasons: tuple[str, ...]
    details: tuple[str, ...] = ()
    for_good: bool = False


Why = tuple[Cause, str]
"""What a pod waits for; for volumes also whose."""


def causes_before(snapshot: Snapshot, groups: Iterable[Group]) -> dict[str, Why]:
    """By pod, why no node takes it even before other pending pods do; nothing of those that fit."""
    refused = ((group, cause_of(snapshot, group.pods[0])) for group in groups)
    return {pod.key: cause for group, cause in refused if cause for pod in group.pods}


def cause_of(snapshot: Snapshot, pod: Pod) -> Why | None:
    """Why no node that is there takes a pod, as explanations have it; None if one does."""
    if not isinstance(snapshot.evaluation(pod), Refusal) and snapshot.decide(pod).node is not None:
        return None
    waiting = why_no_node(snapshot, pod)
    return None if waiting is None else (waiting.cause, min(waiting.drivers, default=""))


def explain_left(
    snapshot: Snapshot,
    left: Sequence[tuple[Group, Why]],
    views: Mapping[str, NodeGroupView],
    refused: Mapping[str, str],
) -> list[LeftPending]:
    """For each pod that is left, with its cause, why nothing helps it; groups that are refused as a
    whole say so, unless their nodes would not help anyway.
    """
    asked = [group for group, _ in left][: max(1, MOST_ASKED // max(1, len(views)))]
    answers: list[dict[str, NoHelp]] = [{} for _ in left]
    for name, view in sorted(views.items()):
        found = _ask(snapshot, view, asked)
        for number in range(len(left)):
            said = found[number] if number < len(found) else None
            answers[number][name] = said or NoHelp((refused.get(name) or TOO_FEW,))
    return [
        one
        for (group, cause), said in zip(left, answers, strict=True)
        for one in _told(group, cause, said)
    ]


TOO_FEW = "would not help with as many nodes as it may have"


def _ask(snapshot: Snapshot, view: NodeGroupView, left: Iterable[Group]) -> list[NoHelp | None]:
    """What a new node of a group says of one of each likeness; None if it would take it."""
    if view.template is None:
        return []
    with snapshot.fork():
        name = next(new_names(snapshot, view.template))
        add_node(snapshot, view.template, name)
        return [_refusal(snapshot, group, name) for group in left]


def _refusal(snapshot: Snapshot, group: Group, name: str) -> NoHelp | None:
    if group.refusal is not None:
        return NoHelp(group.refusal.reasons, for_good=False)
    pod = group.pods[0]
    refusal = snapshot.refusal(pod, name)
    if refusal is None:
        return None
    details = details_of(SnapshotTrial(snapshot, pod, name, refusal))
    return NoHelp(refusal.reasons, details, refuses_for_good(refusal.plugin))


def _told(group: Group, why: Why, said: Mapping[str, NoHelp]) -> Iterable[LeftPending]:
    by_group = {name: one.reasons for name, one in said.items()}
    details = {name: one.details for name, one in said.items() if one.details}
    cause, driver = why
    never = all(one.for_good for one in said.values())
    for pod in group.pods:
        yield LeftPending(pod.key, cause, by_group, details, never, driver=driver)
