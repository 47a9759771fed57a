"""Pods of a group tried together on nodes: all of them find their place, or none takes one.

The places of a gang are tried in a fork of the snapshot, each pod beside those before it. If one
fits nowhere the fork is undone; the others are tried all the same, so that it is known for how many
of them nodes are missing, and only these are Unschedulable. Pods that are like one that was just
refused are refused by the same answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from bayplan.fit import Assumption
from bayplan.scheduler.attempt import Outcome, Placed, Refused, attempt
from bayplan.scheduler.desk import Desk
from bayplan.scheduler.queue import QueuedPod


@dataclass(frozen=True, slots=True)
class Place:
    """A pod with its node."""

    entry: QueuedPod
    found: Placed
    assumption: Assumption


@dataclass(frozen=True, slots=True)
class Fitted:
    """All have their places, which are assumed."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Unfit:
    """Not all have one, so nothing is assumed."""

    refused: tuple[tuple[QueuedPod, Refused], ...]
    """Those that fit nowhere."""
    could: tuple[QueuedPod, ...]
    """Those that would have had a place."""

    @property
    def plugins(self) -> frozenset[str]:
        """Whoever refused one of them."""
        return frozenset(plugin for _, one in self.refused for plugin in one.plugins)


def try_together(desk: Desk, entries: Sequence[QueuedPod]) -> Fitted | Unfit:
    """Find places for all of these pods, and assume them."""
    return _try_gang(desk, entries) if len(entries) > 1 else _try_one(desk, entries[0])


def _try_one(desk: Desk, entry: QueuedPod) -> Fitted | Unfit:
    likeness = ("queued", entry.likeness) if entry.likeness is not None else None
    known = desk.alike.get(likeness) if likeness is not None else None
    outcome = _attempt(desk, entry) if known is None else known
    if isinstance(outcome, Refused):
        if likeness is not None:
            desk.alike[likeness] = outcome
        return Unfit(((entry, outcome),), ())
    place = Place(entry, outcome, desk.snapshot.assume(entry.pod, outcome.decision))
    desk.alike.clear()
    return Fitted((place,))


def _try_gang(desk: Desk, entries: Sequence[QueuedPod]) -> Fitted | Unfit:
    with desk.snapshot.fork():
        places, refused = _tried(desk, entries)
        if refused and places and any(_wants_company(entry) for entry, _ in refused):
            more, refused = _tried(desk, [entry for entry, _ in refused])
            places += more
        if refused:
            return Unfit(tuple(refused), tuple(place.entry for place in places))
        desk.snapshot.commit()
    desk.alike.clear()
    return Fitted(tuple(places))


def _tried(
    desk: Desk, entries: Sequence[QueuedPod]
) -> tuple[list[Place], list[tuple[QueuedPod, Refused]]]:
    """Try pods one after the other, each beside those that have found a place."""
    places: list[Place] = []
    refused: list[tuple[QueuedPod, Refused]] = []
    answers: dict[Hashable, Refused] = {}
    for entry in entries:
        known = answers.get(entry.likeness) if entry.likeness is not None else None
        outcome = _attempt(desk, entry) if known is None else known
        if isinstance(outcome, Placed):
            token = desk.snapshot.assume(entry.pod, outcome.decision)
            places.append(Place(entry, outcome, token))
        else:
            answers[entry.likeness] = outcome
            refused.append((entry, outcome))
    return places, refused


def _attempt(desk: Desk, entry: QueuedPod) -> Outcome:
    profile = desk.profile_of(entry.pod)
    return attempt(desk.snapshot, entry.pod, profile, may_preempt=False)


def _wants_company(entry: QueuedPod) -> bool:
    """Whether a pod may fit once others of its gang have their places."""
    affinity = entry.pod.spec.affinity
    return affinity is not None and affinity.pod_affinity is not None
