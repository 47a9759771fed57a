"""What new nodes were bought for, remembered until they are there.

While nodes are on their way, pods are tried first where the plan had them, in its order: on the
nodes that were there, and on those that were bought for them. Otherwise another way of filling the
same nodes might leave one of these pods over, and a node would be bought for it that nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from bayplan.autoscaler.candidates import Purchase
from bayplan.fit import Snapshot
from bayplan.fit.batches import Group, fill
from bayplan.fit.batches.fill import Placed


@dataclass(frozen=True, slots=True)
class Step:
    """A pod, and the node that it was planned for."""

    uid: str
    node: str = ""
    """The node's name, if it was there."""
    group: str = ""
    number: int = 0
    """Else the group that it was bought of, and which of its new nodes it was."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """Pods in the order in which they were planned."""

    steps: tuple[Step, ...] = ()

    def kept(self, upcoming: Mapping[str, int], waiting: Mapping[str, object]) -> Remembered:
        """What still matters: pods that wait, and nodes that are on their way, counted anew."""
        if not upcoming:
            return NOTHING
        numbers: dict[tuple[str, int], int] = {}
        counts: dict[str, int] = {}
        steps = []
        for step in (one for one in self.steps if one.uid in waiting):
            if step.group:
                key = (step.group, step.number)
                if key not in numbers:
                    numbers[key] = counts.get(step.group, 0)
                    counts[step.group] = numbers[key] + 1
                steps.append(replace(step, number=numbers[key]))
            else:
                steps.append(step)
        return Remembered(tuple(steps))

    def with_more(self, upcoming: Mapping[str, int], purchases: Iterable[Purchase]) -> Remembered:
        """The same with what is bought now, after what was on its way before; a pod that is planned
        anew, since it no longer fits where it was meant to go, is meant to go there no more.
        """
        counts = dict(upcoming)
        steps: list[Step] = []
        for one in purchases:
            first, name = counts.get(one.view.id, 0), one.view.id
            counts[name] = first + one.nodes
            steps += [Step(pod.metadata.uid, node) for pod, node in one.placed]
            steps += [Step(p.metadata.uid, "", name, first + n) for n, p in one.in_order()]
        planned = {step.uid for step in steps}
        before = (step for step in self.steps if step.uid not in planned)
        return Remembered((*before, *steps))


NOTHING = Remembered()


def place_remembered(
    snapshot: Snapshot,
    groups: Sequence[Group],
    upcoming: Mapping[str, Sequence[str]],
    remembered: Remembered,
) -> tuple[list[Placed], list[Group]]:
    """Place pods where they were planned, as far as they still fit there; returns each with its
    node, and the groups without them. They are left assumed.
    """
    where = {
        pod.metadata.uid: (number, pod) for number, group in enumerate(groups) for pod in group.pods
    }
    known = [step for step in remembered.steps if step.uid in where]
    meant = [(_node(snapshot, upcoming, step), *where[step.uid]) for step in known]
    placed: list[Placed] = []
    for (node, number), steps in groupby(meant, key=lambda one: one[:2]):
        alike = groups[number].of([pod for _, _, pod in steps])
        placed += fill(snapshot, alike, among=[node]).placed if node else ()
    gone = {pod.metadata.uid for pod, _ in placed}
    return placed, list(_without(groups, gone))


def _node(snapshot: Snapshot, upcoming: Mapping[str, Sequence[str]], step: Step) -> str:
    """The name of a step's node; empty if there is none any more."""
    if not step.group:
        return step.node if step.node in snapshot.cluster.slots.by_name else ""
    names = upcoming.get(step.group, ())
    return names[step.number] if step.number < len(names) else ""


def _without(groups: Iterable[Group], gone: set[str]) -> Iterator[Group]:
    for group in groups:
        yield group.of([pod for pod in group.pods if pod.metadata.uid not in gone])
