"""Comparing what Bayplan decides about queues with what Volcano decides.

The total is what Volcano takes, the nodes that there are, and the rules are Volcano's; the
arithmetic and the code are those that run. Answers are counted by section. A case that shows a
defect of Volcano's is marked, and counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Literal, NamedTuple

from bayplan.fit import Profile, Snapshot
from bayplan.fit.profile import PluginSet
from bayplan.kube.codec import decode_object
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues import NOTHING, Resources, TaskStatus, read_amounts
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.rules import VOLCANO, Rules
from bayplan.queues.status import GroupStatus, group_status
from tests.oracle.corpus import QueueCase

Section = Literal["attributes", "admission", "allocation", "eviction", "gates"]
SECTIONS: tuple[Section, ...] = ("attributes", "admission", "allocation", "eviction", "gates")

_SECTION: Mapping[str, Section] = {
    "admitted": "admission",
    "phase": "admission",
    "conditions": "admission",
    "rejectedFor": "admission",
    "ignored": "admission",
    "bound": "allocation",
    "pipelined": "allocation",
    "ready": "allocation",
    "state": "allocation",
    "evicted": "eviction",
    "gatesRemoved": "gates",
    "gateRemoved": "gates",
}
_FIRST_NODE = replace(Profile.kubernetes(), plugins=PluginSet(scores=()))
"""The first node that fits, which is one of the preferences that the corpus was recorded with."""
_MOVING = {"allocated", "share", "inqueue", "reserved"}
_STATES = {
    TaskStatus.BINDING: "bound",
    TaskStatus.PIPELINED: "pipelined",
    TaskStatus.ALLOCATED: "allocated",
    TaskStatus.PENDING: "pending",
    TaskStatus.RUNNING: "running",
    TaskStatus.BOUND: "bound",
}


class Answer(NamedTuple):
    """One thing that was asked: where, ours and theirs."""

    section: Section
    path: str
    ours: object
    theirs: object

    @property
    def agrees(self) -> bool:
        """Whether the two are equal, as far as that is asked."""
        return self.ours == self.theirs


def answers(case: QueueCase, rules: Rules = VOLCANO) -> Iterator[Answer]:
    """Everything that is known for sure of a case, and what Bayplan says of it."""
    unstable = frozenset(case.expected["unstable"])
    for answer in Run(case, rules).answers():
        steps = answer.path.split("|")
        if unstable.isdisjoint("|".join(steps[:n]) for n in range(1, len(steps) + 1)):
            yield answer


@dataclass
class Run:
    """One session of ours on a case, by Volcano's rules or by our own."""

    case: QueueCase
    rules: Rules = VOLCANO

    def __post_init__(self) -> None:
        objects = [decode_object(one) for one in self.case.objects]
        classes = {one.name: one.value for one in objects if isinstance(one, PriorityClass)}
        self.ledger = self.rules.ledger(
            policy=self.case.plugin,
            hierarchy=self.case.hierarchy,
            total=_total(one for one in objects if isinstance(one, Node)),
            priority_of=lambda name: classes.get(name, 0),
        )
        for one in objects:
            if isinstance(one, Queue):
                self.ledger.put_queue(one)
            elif isinstance(one, PodGroup):
                self.ledger.put_group(one)
            elif isinstance(one, Pod):
                self.ledger.put_pod(one)
        self.opened = {name: self._attributes(name) for name in self.ledger.tree.nodes}
        leaving = [m for m in self.ledger.members.values() if m.status is TaskStatus.RELEASING]
        snapshot = Snapshot(objects, profile=_FIRST_NODE)
        self.session = self.rules.session(self.ledger, SnapshotPlacement(snapshot, leaving))
        self.rules.act(self.session, self.case.actions)

    def answers(self) -> Iterator[Answer]:
        """Everything that was asked."""
        expected = self.case.expected
        for name, theirs in expected["queuesOpen"].items():
            yield from self._compare_queue("queuesOpen", name, self.opened[name], theirs)
        for name, theirs in expected["queuesAfter"].items():
            moved = {key: value for key, value in theirs.items() if key in _MOVING}
            yield from self._compare_queue("queuesAfter", name, self._attributes(name), moved)
        for key, theirs in expected["podgroups"].items():
            yield from _compare("podgroups", key, self.group(key), theirs)
        for key, theirs in expected["pods"].items():
            yield from _compare("pods", key, self._pod(key), theirs)
        for name, theirs in expected["queueCounts"].items():
            yield from _compare("queueCounts", name, self._counts[name], theirs)

    # -- queues ----------------------------------------------------------------------------------

    def _attributes(self, queue: str) -> dict[str, Resources | float]:
        usage, quota = self.ledger.usage(queue), self.ledger.quota(queue)
        return {
            "capability": quota.capability,
            "deserved": quota.deserved,
            "guarantee": quota.guarantee,
            "realCapability": quota.real_capability,
            "allocated": usage.allocated,
            "request": usage.request,
            "inqueue": usage.inqueue,
            "elastic": usage.elastic,
            "reserved": usage.reserved,
            "share": self.ledger.share(queue),
        }

    def _compare_queue(
        self, part: str, queue: str, ours: Mapping[str, Resources | float], theirs: dict[str, Any]
    ) -> Iterator[Answer]:
        for attribute, value in theirs.items():
            if attribute not in ours:
                continue
            mine = ours[attribute]
            path = f"{part}|{queue}|{attribute}"
            if not isinstance(mine, Resources):
                yield Answer("attributes", path, _near(mine, value, 1e-6), value)
            elif attribute != "capability" or any(value.values()):
                for name in value if attribute == "capability" else {*value, *mine.amounts}:
                    amount = _amount(value.get(name, 0))
                    near = _near(mine[name], amount)
                    yield Answer("attributes", f"{path}|{name}", near, amount)

    # -- groups and pods -------------------------------------------------------------------------

    @cached_property
    def _evicted(self) -> set[str]:
        return {one.pod for one in self.session.plan.evicted}

    @cached_property
    def _ungated(self) -> set[str]:
        return set(self.session.plan.ungated)

    def group(self, key: str) -> dict[str, object]:
        """What is known of a group after the session."""
        group = self.ledger.groups[key]
        ignored = group.queue not in self.ledger.tree.nodes
        status = group_status(group)
        rejected = self.session.plan.waiting.get(key)
        return {
            "ignored": ignored,
            "admitted": not group.is_pending,
            "phase": "Pending" if ignored else status.phase,
            "conditions": frozenset(_types(status) if not ignored else ()),
            "rejectedFor": frozenset(rejected.resources if rejected else ()),
            "ready": group.is_ready and not ignored,
            **self._pod_counts(key),
        }

    def _pod_counts(self, key: str) -> dict[str, int]:
        members = self.ledger.groups[key].members.values()
        return {
            "bound": sum(one.status is TaskStatus.BINDING for one in members),
            "pipelined": sum(one.status is TaskStatus.PIPELINED for one in members),
            "evicted": sum(one.key in self._evicted for one in members),
            "gatesRemoved": sum(one.key in self._ungated for one in members),
        }

    @cached_property
    def _counts(self) -> dict[str, Counter[str]]:
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.ledger.tree.nodes}
        for key, group in self.ledger.groups.items():
            if group.queue in counts:
                counts[group.queue].update(self._pod_counts(key))
                counts[group.queue]["admitted"] += not group.is_pending
        return counts

    def _pod(self, key: str) -> dict[str, object]:
        member = self.ledger.members[key]
        group = self.ledger.groups[member.group]
        ours: dict[str, object] = {"gateRemoved": key in self._ungated}
        if group.queue not in self.ledger.tree.nodes:
            ours["state"] = "ignored"
        elif member.status is TaskStatus.RELEASING:
            ours["state"] = "evicted" if key in self._evicted else "terminating"
        else:
            ours["state"] = _STATES.get(member.status, member.status.value)
        return ours


def _compare(
    part: str, key: str, ours: Mapping[str, object], theirs: dict[str, Any]
) -> Iterator[Answer]:
    for name, value in theirs.items():
        if name not in _SECTION:
            continue
        section = _SECTION[name]
        if name == "state" and "evicted" in {value, ours[name]}:
            section = "eviction"
        path, mine = f"{part}|{key}|{name}", ours[name]
        if isinstance(mine, frozenset):
            for one in mine.union(value):
                yield Answer(section, f"{path}|{one}", one in mine, one in value)
        else:
            yield Answer(section, path, mine, value)


def _types(status: GroupStatus) -> tuple[str, ...]:
    return (status.condition.type,) if status.condition else ()


def _total(nodes: Iterator[Node]) -> Resources:
    return sum((read_amounts(node.status.allocatable) for node in nodes), NOTHING)


def _amount(written: float | str) -> float:
    return inf if written == "inf" else float(written)


def _near(mine: float, theirs: float, slack: float | None = None) -> float:
    """Theirs, if ours is as good as that."""
    if mine == theirs:
        return theirs
    allowed = max(1, 1e-6 * abs(theirs)) if slack is None else slack
    return theirs if abs(mine - theirs) <= allowed else mine
