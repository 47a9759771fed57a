"""Compares the snapshot with the API server, as kube-scheduler's cache debugger does.

All objects are listed and compared by version and, where versions are equal, by content. A watch
always lags a little, so objects that differ are read again, one by one, up to `ROUNDS` times; only
what still differs then is a difference. Assumed pods, their claims and volumes are expected to
differ and are left out, as are invalid objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bayplan.client import Client
from bayplan.client.errors import NotFoundError
from bayplan.client.objects import version_of
from bayplan.kube.manifests.collector import intern_texts
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.observe.kinds import selection_of
from bayplan.observe.livesnapshot import LiveSnapshot

ROUNDS = 5
PAUSE = 0.5
"""Seconds between two rounds."""
Which = tuple[type[KubeObject], str]


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that differs between the snapshot and the API server."""

    kind: type[KubeObject]
    key: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind.__name__} {self.key}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison."""

    compared: int
    differences: tuple[Difference, ...]
    set_aside: tuple[str, ...]
    """The problems of invalid objects, which are left out of the snapshot."""

    @property
    def equal(self) -> bool:
        """Whether the snapshot has what the API server has."""
        return not self.differences


async def compare(live: LiveSnapshot, client: Client) -> Comparison:
    """Compare a live snapshot with the cluster it follows."""
    listed: dict[Which, KubeObject] = {}
    for informer in live.followed:
        kind = informer.resource.type
        page = await client.collect(kind, selection_of(kind), malformed=lambda _: None)
        listed.update({(kind, obj.key): obj for obj in page.items})
    compared = len(listed)
    differences = _first_differences(live, listed)
    for _ in range(ROUNDS):
        if not differences:
            break
        await client.clock.sleep(PAUSE)
        results = [await _compare_again(live, client, one.kind, one.key) for one in differences]
        differences = [one for one in results if one is not None]
    invalid = tuple(sorted(problem.text for problem in live.observer.invalid))
    return Comparison(compared, tuple(differences), invalid)


def _first_differences(live: LiveSnapshot, listed: Mapping[Which, KubeObject]) -> list[Difference]:
    """Return the objects that differ in the first round."""
    held = {(type(obj), obj.key): obj for obj in live.snapshot.objects()}
    expected = _expected_differences(live)
    return [
        Difference(*one, problem)
        for one in sorted(listed.keys() | held.keys(), key=lambda one: (one[0].__name__, one[1]))
        if one not in expected and (problem := _problem(held.get(one), listed.get(one)))
    ]


async def _compare_again(
    live: LiveSnapshot, client: Client, kind: type[KubeObject], key: str
) -> Difference | None:
    """Compare one object again; None if it is equal now."""
    try:
        listed: KubeObject | None = await client.get(kind, *key.split("/"))
    except NotFoundError:
        listed = None
    if isinstance(listed, Pod) and listed.is_terminal:
        listed = None
    if (kind, key) in _expected_differences(live):
        return None
    problem = _problem(live.snapshot.get(kind, key), listed)
    return Difference(kind, key, problem) if problem else None


def _problem(held: KubeObject | None, listed: KubeObject | None) -> str:
    """Describe how the snapshot's version differs from the listed one; empty if it does not."""
    if held is None or listed is None:
        if held is listed:
            return ""
        return "is not in the snapshot" if held is None else "is not in the cluster any more"
    if version_of(held) != version_of(listed):
        return f"version {version_of(held)} in the snapshot, {version_of(listed)} in the cluster"
    intern_texts(listed)
    return "" if held == listed else "the same version, but other contents"


def _expected_differences(live: LiveSnapshot) -> set[Which]:
    """Return the objects that may differ: invalid ones, and those of assumed pods."""
    expected: set[Which] = {(problem.kind, problem.key) for problem in live.observer.invalid}
    for assumption in live.snapshot.assumptions():
        expected.add((Pod, assumption.pod_key))
        for binding in assumption.decision.bindings:
            expected.add((PersistentVolumeClaim, binding.claim))
            expected.add((PersistentVolume, binding.volume))
    return expected
