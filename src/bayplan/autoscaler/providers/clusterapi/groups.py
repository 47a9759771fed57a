"""What a scalable resource says of itself as a node group, by its annotations.

One without a maximum is no group. One whose bounds cannot be read is none either, and that is told.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bayplan.autoscaler.providers.clusterapi.kinds import MachineDeployment, MachineSet, Scalable
from bayplan.autoscaler.providers.clusterapi.words import REVISION, Words
from bayplan.autoscaler.providers.texts import read_options, shown
from bayplan.nodegroups import CSI_DRIVERS, NodeGroup
from bayplan.nodegroups.templates import read_limits

MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Group:
    """A scalable resource that is a node group."""

    resource: Scalable
    group: NodeGroup
    options: Mapping[str, float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of reading one; None if it is no group."""

    group: Group | None
    problems: tuple[str, ...] = ()


def group_id(resource: Scalable) -> str:
    """`MachineDeployment/namespace/name`."""
    return f"{resource.kind}/{resource.namespace}/{resource.name}"


def read_group(resource: Scalable, words: Words) -> Reading:
    """The group that a resource is, and what it says that cannot be read."""
    if _owned_by_deployment(resource) or is_paused(resource, words):
        return Reading(None)
    bounds, problems = _bounds(resource.metadata.annotations, words)
    if bounds is None or not bounds[1]:
        return Reading(None, tuple(problems))
    options, wrong = read_options(_options(resource, words), words.options)
    replicas = resource.spec.replicas
    if replicas is None:
        return Reading(None, (*problems, "spec.replicas: it is not said how many there are"))
    line = f"{resource.kind} {resource.name} (min: {bounds[0]}, max: {bounds[1]})"
    group = NodeGroup(group_id(resource), *bounds, line)
    limits = read_limits(resource.metadata.annotations.get(CSI_DRIVERS, ""))[1]
    return Reading(Group(resource, group, options), (*problems, *wrong, *limits))


def is_paused(resource: Scalable, words: Words) -> bool:
    """Whether Cluster API does nothing about it now, so that scaling it would do nothing."""
    paused = words.paused in resource.metadata.annotations
    return paused or (isinstance(resource, MachineDeployment) and resource.spec.paused)


def is_rolling_out(sets: Collection[Scalable]) -> bool:
    """Whether machines of an older revision are still among those of a MachineDeployment's sets.

    Whoever makes it smaller then cannot say which machine goes: Cluster API takes from every set.
    """
    revisions = {one.name: _revision(one) for one in sets}
    newest = max(revisions.values(), default=0)
    return any(
        (one.spec.replicas or one.status.replicas) and revisions[one.name] != newest for one in sets
    )


def _revision(one: Scalable) -> int:
    text = one.metadata.annotations.get(REVISION, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0


def _owned_by_deployment(resource: Scalable) -> bool:
    owners = resource.metadata.owner_references
    return isinstance(resource, MachineSet) and any(
        one.kind == MachineDeployment.__name__ for one in owners
    )


def _bounds(
    annotations: Mapping[str, str], words: Words
) -> tuple[tuple[int, int] | None, list[str]]:
    found: list[int] = []
    problems: list[str] = []
    for name in (words.min_size, words.max_size):
        text = annotations.get(name, "0").strip()
        if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MOST:
            found.append(int(text))
        else:
            problems.append(shown(name, text, "this is no size"))
    if problems:
        return None, problems
    least, most = found
    if least > most:
        said = f"the minimum {least} is more than the maximum {most}"
        return None, [f"{words.max_size}: {said}"]
    return (least, most), []


def _options(resource: Scalable, words: Words) -> dict[str, str]:
    prefix = words.options
    annotations = resource.metadata.annotations.items()
    return {
        name.removeprefix(prefix): text for name, text in annotations if name.startswith(prefix)
    }
