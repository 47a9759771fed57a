"""Proof of a fix: its steps are taken in a fork, the pod must get a node, and no step may be one
that the fix does without.
"""

from __future__ import annotations

from bayplan.fit.explanation.actions import acted
from bayplan.fit.explanation.replay import without
from bayplan.fit.fixes import Fix, FixKind, Step, Steps
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.pods import placed_on
from bayplan.kube.pods import Pod


def proven(snapshot: Snapshot, pod: Pod, steps: Steps) -> Fix | None:
    """The fix that steps are, without those that it can do without, if it places the pod."""
    node = node_after(snapshot, steps)
    if node is None:
        return None
    index = 0
    while index < len(steps) and len(steps) > 1:
        fewer = without(snapshot, pod, steps, index)
        there = node_after(snapshot, fewer)
        if there is None:
            index += 1
        else:
            steps, node, index = fewer, there, 0
    return Fix(_acted(snapshot, pod, steps), node)


def node_after(snapshot: Snapshot, steps: Steps) -> str | None:
    """Where the pod goes once steps are taken; None if nowhere, or if a pod that is moved for it
    could then not be where it is moved to.
    """
    with snapshot.fork():
        for step in steps:
            step.apply(snapshot)
        pod = steps[-1].pod
        node = snapshot.decide(pod).node
        moved = [step.puts[0] for step in steps if step.kind is FixKind.MOVE_POD]
        if node is None or not moved:
            return node
        snapshot.assume(pod, snapshot.decision_on(pod, node))
        return node if all(_stands(snapshot, one) for one in moved) else None


def _stands(snapshot: Snapshot, moved: object) -> bool:
    """Whether a pod fits where it is."""
    if not isinstance(moved, Pod):
        return False
    with snapshot.fork():
        snapshot.put(placed_on(moved, ""))
        return snapshot.refusal(placed_on(moved, ""), moved.spec.node_name) is None


def _acted(snapshot: Snapshot, pod: Pod, steps: Steps) -> Steps:
    taken: list[Step] = []
    with snapshot.fork():
        for step in steps:
            taken.append(acted(snapshot, taken[-1].pod if taken else pod, step))
            step.apply(snapshot)
    return tuple(taken)
