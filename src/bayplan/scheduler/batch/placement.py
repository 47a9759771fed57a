"""Placement in a scheduling turn: by the pod's profile, with the reason for each pod that fits
nowhere.

A turn tries pods in a fork of the snapshot; what it places is assumed there. If the turn fails the
fork is reverted, so that withdrawing a pod costs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.kube.pods import Pod
from bayplan.queues.members import Member
from bayplan.queues.placement import Choice, SnapshotPlacement
from bayplan.scheduler.attempt import Outcome, Placed, Refused, attempt
from bayplan.scheduler.context import SchedulerContext


class LivePlacement(SnapshotPlacement):
    """The scheduler's snapshot, in one turn."""

    def __init__(self, context: SchedulerContext, *, alone: bool = False) -> None:
        super().__init__(context.snapshot)
        self.found: dict[str, Placed] = {}
        """By pod where it fits."""
        self._refusals: dict[Hashable, Refused] = {}
        """By equivalence class, why no node fits."""
        self._context = context
        self._alone = alone
        """Whether one pod is tried: its refusal holds for the next of its signature."""

    def pod_of(self, member: Member) -> Pod:
        """Return the pod as it will be scheduled."""
        entry = self._context.queue.get(member.pod.metadata.uid)
        return member.pod if entry is None else entry.pod

    def equivalence_class(self, member: Member) -> Hashable:
        """Return a key that is equal for pods that fit the same nodes."""
        entry = self._context.queue.get(member.pod.metadata.uid)
        if entry is None or entry.signature is None:
            return super().equivalence_class(member)
        return entry.signature

    def refusal_of(self, member: Member) -> Refused:
        """Return why no node fits a pod."""
        return self._refusals[self.equivalence_class(member)]

    def choose(self, member: Member) -> Choice | None:
        """Return the best node on which a pod fits now."""
        outcome = self._outcome(member)
        if isinstance(outcome, Refused):
            self._refusals[self.equivalence_class(member)] = outcome
            return None
        self.found[member.key] = outcome
        return Choice(outcome.node, now=True)

    def _outcome(self, member: Member) -> Outcome:
        entry = self._context.queue.get(member.pod.metadata.uid)
        if not self._alone or entry is None or entry.signature is None:
            return self._attempt(member)
        like = ("queued", entry.signature)
        known = self._context.known_refusals.get(like)
        outcome = self._attempt(member) if known is None else known
        if isinstance(outcome, Refused):
            self._context.known_refusals[like] = outcome
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
