"""Is what we hold what the API server has? A comparer, for whoever doubts it.

Everything is listed afresh and compared, version by version and, for equal versions, content by
content. A watch is always a little behind, so what differs is looked at again, object by object,
until the two have met or the rounds are over; only what still differs then is a difference.
What we have assumed and not yet seen is expected to differ, and is left out, as is what was set
aside on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bayplan.client import Client
from bayplan.client.errors import NotFoundError
from bayplan.client.objects import version_of
from bayplan.kube.loading.collector import slim
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.observe.following import LiveSnapshot
from bayplan.observe.kinds import which

ROUNDS = 5
PAUSE = 0.5
"""Seconds between two looks."""
Which = tuple[type[KubeObject], str]


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that we hold otherwise than the API server."""

    kind: type[KubeObject]
    key: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind.__name__} {self.key}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a comparison."""

    looked_at: int
    differences: tuple[Difference, ...]
    set_aside: tuple[str, ...]
    """What is wrong with the objects that are not in the snapshot on purpose."""

    @property
    def equal(self) -> bool:
        """Whether we hold what the API server has."""
        return not self.differences


async def compare(live: LiveSnapshot, client: Client) -> Comparison:
    """Compare a live snapshot with the cluster it follows."""
    there: dict[Which, KubeObject] = {}
    for informer in live.followed:
        kind = informer.resource.type
        page = await client.collect(kind, which(kind), unfit=lambda _: None)
        there.update({(kind, obj.key): obj for obj in page.items})
    looked_at = len(there)
    differences = _doubtful(live, there)
    for _ in range(ROUNDS):
        if not differences:
            break
        await client.clock.sleep(PAUSE)
        looks = [await _look(live, client, one.kind, one.key) for one in differences]
        differences = [one for one in looks if one is not None]
    aside = tuple(sorted(problem.text for problem in live.observer.aside))
    return Comparison(looked_at, tuple(differences), aside)


def _doubtful(live: LiveSnapshot, there: Mapping[Which, KubeObject]) -> list[Difference]:
    """Whatever looks different at first."""
    held = {(type(obj), obj.key): obj for obj in live.snapshot.objects()}
    spared = _spared(live)
    return [
        Difference(*one, problem)
        for one in sorted(there.keys() | held.keys(), key=lambda one: (one[0].__name__, one[1]))
        if one not in spared and (problem := _problem(held.get(one), there.get(one)))
    ]


async def _look(
    live: LiveSnapshot, client: Client, kind: type[KubeObject], key: str
) -> Difference | None:
    """Look at one object again; None if all is well by now."""
    try:
        there: KubeObject | None = await client.get(kind, *key.split("/"))
    except NotFoundError:
        there = None
    if isinstance(there, Pod) and there.is_terminal:
        there = None
    if (kind, key) in _spared(live):
        return None
    problem = _problem(live.snapshot.get(kind, key), there)
    return Difference(kind, key, problem) if problem else None


def _problem(held: KubeObject | None, there: KubeObject | None) -> str:
    """How what we hold differs from what is there; empty if it does not."""
    if held is None or there is None:
        if held is there:
            return ""
        return "is not in the snapshot" if held is None else "is not in the cluster any more"
    if version_of(held) != version_of(there):
        return f"version {version_of(held)} here, {version_of(there)} there"
    slim(there)
    return "" if held == there else "the same version, but other contents"


def _spared(live: LiveSnapshot) -> set[Which]:
    """What may differ: it was set aside, or we have assumed something of it."""
    spared: set[Which] = {(problem.kind, problem.key) for problem in live.observer.aside}
    for assumption in live.snapshot.assumptions():
        spared.add((Pod, assumption.pod_key))
        for binding in assumption.decision.bindings:
            spared.add((PersistentVolumeClaim, binding.claim))
            spared.add((PersistentVolume, binding.volume))
    return spared
