"""Proof of a fix: its steps are taken in a fork, the pod must get a node, and every step must be
needed.

A step holds its objects as they were after it, and so after those before it too. To leave one out,
what every other step changed (from before it to after it) is carried over to what is there.

Of fixes that hold, those are dropped that another dominates. A fix dominates another if each of its
steps corresponds to one of the other's: the same step, less of the same (a request that shrinks by
less), or, for the same node, a step of the same kind that costs no more. So does one that takes
fewer steps of the same kinds, and costs no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

import msgspec

from bayplan.base.values import JsonObject, JsonValue
from bayplan.fit.explanation.actions import with_action
from bayplan.fit.explanation.patches import plain
from bayplan.fit.fixes import Fix, FixKind, Step, Steps, cost_of
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.pods import placed_on
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod

# -- steps without one of them ---------------------------------------------------------------------


T = TypeVar("T", bound=KubeObject)
Before = tuple[Pod, tuple[KubeObject | None, ...]]


def steps_without(snapshot: Snapshot, pod: Pod, steps: Steps, index: int) -> Steps:
    """Return the steps without one, each adapted; nothing is changed."""
    befores = _befores(snapshot, pod, steps)
    taken: list[Step] = []
    with snapshot.fork():
        for at, (step, before) in enumerate(zip(steps, befores, strict=True)):
            if at != index:
                again = _again(snapshot, taken[-1].pod if taken else pod, step, before)
                again.apply(snapshot)
                taken.append(again)
    return tuple(taken)


def _befores(snapshot: Snapshot, pod: Pod, steps: Steps) -> list[Before]:
    """Return the pod and the objects that each step puts, as they were before it."""
    found: list[Before] = []
    with snapshot.fork():
        for step in steps:
            found.append((pod, tuple(snapshot.get(type(obj), obj.key) for obj in step.puts)))
            step.apply(snapshot)
            pod = step.pod
    return found


def _again(snapshot: Snapshot, pod: Pod, step: Step, before: Before) -> Step:
    old_pod, old = before
    puts = tuple(
        obj if was is None else carry_over(was, obj, snapshot.get(type(obj), obj.key) or obj)
        for was, obj in zip(old, step.puts, strict=True)
    )
    return replace(step, pod=carry_over(old_pod, step.pod, pod), puts=puts)


def carry_over(before: T, after: T, base: T) -> T:
    """Return the base with the changes from before to after."""
    if before == base:
        return after
    found = _merged(plain(before), plain(after), plain(base))
    return msgspec.convert(found, type(after))


def _merged(before: JsonValue, after: JsonValue, base: JsonValue) -> JsonValue:
    if before == after:
        return base
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(base, dict):
        found = {
            key: _merged(before.get(key), _left(before, after, key), base.get(key))
            for key in base | after
        }
        return {key: value for key, value in found.items() if value is not None}
    if isinstance(before, list) and isinstance(after, list) and isinstance(base, list):
        return _merged_lists(before, after, base)
    return after


def _left(before: JsonObject, after: JsonObject, key: str) -> JsonValue:
    """A value after a step; what is empty is left out of plain values."""
    there = before.get(key)
    empty: JsonValue = [] if isinstance(there, list) else {} if isinstance(there, dict) else None
    return after.get(key, empty)


def _merged_lists(
    before: list[JsonValue], after: list[JsonValue], base: list[JsonValue]
) -> list[JsonValue]:
    if len(before) == len(after) == len(base):
        return [_merged(*three) for three in zip(before, after, base, strict=True)]
    stays = [one for one in base if one not in before or one in after]
    return stays + [one for one in after if one not in before and one not in base]


# -- proof -----------------------------------------------------------------------------------------


def prove_fix(snapshot: Snapshot, pod: Pod, steps: Steps) -> Fix | None:
    """Return the fix of these steps without superfluous ones, if it places the pod."""
    node = node_after(snapshot, steps)
    if node is None:
        return None
    index = 0
    while index < len(steps) and len(steps) > 1:
        fewer = steps_without(snapshot, pod, steps, index)
        there = node_after(snapshot, fewer)
        if there is None:
            index += 1
        else:
            steps, node, index = fewer, there, 0
    return Fix(_with_actions(snapshot, pod, steps), node)


def node_after(snapshot: Snapshot, steps: Steps) -> str | None:
    """Return where the pod goes once steps are taken; None if nowhere, or if a pod that is moved
    for it would not fit its new node.
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
        return node if all(_fits_where_it_is(snapshot, one) for one in moved) else None


def _fits_where_it_is(snapshot: Snapshot, moved: object) -> bool:
    """Whether a pod fits where it is."""
    if not isinstance(moved, Pod):
        return False
    with snapshot.fork():
        snapshot.put(placed_on(moved, ""))
        return snapshot.refusal(placed_on(moved, ""), moved.spec.node_name) is None


def _with_actions(snapshot: Snapshot, pod: Pod, steps: Steps) -> Steps:
    taken: list[Step] = []
    with snapshot.fork():
        for step in steps:
            taken.append(with_action(snapshot, taken[-1].pod if taken else pod, step))
            step.apply(snapshot)
    return tuple(taken)


# -- fixes that ask for more than another ----------------------------------------------------------


def undominated(fixes: Iterable[Fix]) -> list[Fix]:
    """Return the fixes that no other dominates, the cheapest first."""
    kept: list[Fix] = []
    for fix in sorted(fixes, key=order):
        if not any(dominates(other, fix) for other in kept):
            kept.append(fix)
    return kept


def dominates(fix: Fix, other: Fix) -> bool:
    """Whether this fix makes the other one superfluous."""
    if Counter(fix.kinds) < Counter(other.kinds) and fix.cost <= other.cost:
        return True
    left: list[Step] = list(other.steps)
    for step in fix.steps:
        match = next((one for one in left if _asks_no_more(step, one, fix, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def order(fix: Fix) -> tuple[float, tuple[str, ...]]:
    """Order fixes by cost."""
    return order_of(fix.steps)


def order_of(steps: Steps) -> tuple[float, tuple[str, ...]]:
    """Order steps by cost."""
    return cost_of(steps), tuple(step.text for step in steps)


def _asks_no_more(step: Step, other: Step, fix: Fix, another: Fix) -> bool:
    if step.kind is not other.kind:
        return False
    if step.text == other.text:
        return True
    same_thing = bool(step.less_of) and step.less_of == other.less_of
    return (same_thing or fix.node == another.node) and step.cost <= other.cost
