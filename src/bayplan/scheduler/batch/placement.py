"""Nodes as a scheduling turn asks for them: by the pod's profile, with what each pod was told.

A turn tries pods in a fork of the snapshot; what it places is assumed there. If the turn comes to
nothing the fork is reverted, so that withdrawing a pod costs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.kube.pods import Pod
from bayplan.queues.members import Member
from bayplan.queues.placement import Choice, SnapshotPlacement
from bayplan.scheduler.attempt import Outcome, Placed, Refused, attempt
from bayplan.scheduler.context import SchedulerContext


class LivePlacement(SnapshotPlacement):
    """The scheduler's snapshot, asked for one turn."""

    def __init__(self, context: SchedulerContext, *, alone: bool = False) -> None:
        super().__init__(context.snapshot)
        self.found: dict[str, Placed] = {}
        """By pod where it fits."""
        self._refusals: dict[Hashable, Refused] = {}
        """By what pods have in common, why no node takes them."""
        self._context = context
        self._alone = alone
        """Whether one pod is tried: what it is told holds for the next that is like it."""

    def pod_of(self, member: Member) -> Pod:
        """A pod as it is to be tried."""
        entry = self._context.queue.get(member.pod.metadata.uid)
        return member.pod if entry is None else entry.pod

    def likeness(self, member: Member) -> Hashable:
        """What pods have in common that get the same answer."""
        entry = self._context.queue.get(member.pod.metadata.uid)
        if entry is None or entry.likeness is None:
            return super().likeness(member)
        return entry.likeness

    def refusal_of(self, member: Member) -> Refused:
        """Why no node takes a pod, or one that is like it."""
        return self._refusals[self.likeness(member)]

    def choose(self, member: Member) -> Choice | None:
        """The best node that has room now."""
        outcome = self._outcome(member)
        if isinstance(outcome, Refused):
            self._refusals[self.likeness(member)] = outcome
            return None
        self.found[member.key] = outcome
        return Choice(outcome.node, now=True)

    def _outcome(self, member: Member) -> Outcome:
        entry = self._context.queue.get(member.pod.metadata.uid)
        if not self._alone or entry is None or entry.likeness is None:
            return self._attempt(member)
        like = ("queued", entry.likeness)
        known = self._context.alike.get(like)
        outcome = self._attempt(member) if known is None else known
        if isinstance(outcome, Refused):
            self._context.alike[like] = outcome
        return outcome

    def _attempt(self, member: Member) -> Outcome:
        pod = self.pod_of(member)
        return attempt(
            self._context.snapshot, pod, self._context.profile_of(pod), may_preempt=False
        )

    def place(self, member: Member, _node: str) -> None:
        """Take a pod as placed where it was just found to fit."""
        decision = self.found[member.key].decision
        self.assumptions[member.key] = self._context.snapshot.assume(self.pod_of(member), decision)

    def withdraw(self, member: Member) -> None:
        """Forget where a pod was placed; the fork takes it back."""
        del self.assumptions[member.key]
