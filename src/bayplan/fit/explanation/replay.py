"""Steps of a fix without one of them: what each changed is changed again where it now stands.

A step holds its objects as they were after it, and so after those before it too. To leave one out,
what every other step changed (from before it to after it) is carried over to what is there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import msgspec

from bayplan.base.values import JsonObject, JsonValue
from bayplan.fit.explanation.actions.patches import plain
from bayplan.fit.fixes import Step, Steps
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod

T = TypeVar("T", bound=KubeObject)
Before = tuple[Pod, tuple[KubeObject | None, ...]]


def without(snapshot: Snapshot, pod: Pod, steps: Steps, index: int) -> Steps:
    """The steps but one, each as it is without that one; nothing is changed."""
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
    """The pod, and the objects that each step puts, as they were before it."""
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
        obj if was is None else carried(was, obj, snapshot.get(type(obj), obj.key) or obj)
        for was, obj in zip(old, step.puts, strict=True)
    )
    return replace(step, pod=carried(old_pod, step.pod, pod), puts=puts)


def carried(before: T, after: T, base: T) -> T:
    """The base, with what was changed from before to after."""
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
