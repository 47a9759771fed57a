"""A scalable resource as a node group, and the group's next node.

Annotations say the bounds. A resource without a maximum is no group. One whose bounds cannot be
read is none either, and that is told.

The next node comes from annotations, spec and the infrastructure's template. An annotation counts
over what the infrastructure says. Without cpu and memory from either there is no template, and none
either if a taint cannot be read: it would promise too much. What is in the annotation `csi-driver`
stays on the node, where everybody looks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from bayplan.autoscaler.providers.clusterapi.objects import (
    CAPACITY,
    GPU_LABEL,
    REVISION,
    ApiNames,
    MachineDeployment,
    MachineSet,
    Scalable,
    is_managed,
)
from bayplan.autoscaler.providers.descriptions import (
    described_node,
    merged_taints,
    read_amounts,
    read_labels,
    read_options,
    read_taint,
    shown,
    split_pairs,
)
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint
from bayplan.kube.quantity import parse
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from bayplan.nodegroups import (
    CSI_DRIVERS,
    NodeGroup,
    NotOfferedError,
    TemplateNodeInfo,
    template_of,
)
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


def read_group(resource: Scalable, words: ApiNames) -> Reading:
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


def is_paused(resource: Scalable, words: ApiNames) -> bool:
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
    annotations: Mapping[str, str], words: ApiNames
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


def _options(resource: Scalable, words: ApiNames) -> dict[str, str]:
    prefix = words.options
    annotations = resource.metadata.annotations.items()
    return {
        name.removeprefix(prefix): text for name, text in annotations if name.startswith(prefix)
    }


_AMOUNTS = {"cpu": CPU, "memory": MEMORY, "ephemeral-disk": EPHEMERAL_STORAGE, "maxPods": PODS}
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """What the template of a machine's infrastructure says of its nodes."""

    capacity: Mapping[str, str] = field(default_factory=dict)
    architecture: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True)
class Described:
    """What is said of a group's next node, and what of it cannot be read."""

    amounts: Mapping[str, Quantity]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unread_taints: tuple[str, ...]
    problems: tuple[str, ...]
    """All of them, those with taints too."""


def template(group: Group, infrastructure: Infrastructure, architecture: str) -> TemplateNodeInfo:
    """The template; NotOfferedError if nobody says how large the node will be."""
    described = describe(group)
    known, _ = read_amounts(infrastructure.capacity, infrastructure.capacity)
    amounts = {**known, **described.amounts}
    if missing := [name for name in (CPU, MEMORY) if name not in amounts]:
        said = f"it has no annotation {CAPACITY}{missing[0]} that can be read"
        raise NotOfferedError(f"node group {group.group.id}: {said}")
    if described.unread_taints:
        raise NotOfferedError(f"node group {group.group.id}: {described.unread_taints[0]}")
    generic = {ARCH: infrastructure.architecture or architecture}
    generic[OS] = infrastructure.system or "linux"
    text = group.resource.metadata.annotations.get(CSI_DRIVERS)
    node = described_node(
        group.group.id,
        {**generic, **described.labels},
        described.taints,
        amounts,
        annotations={} if text is None else {CSI_DRIVERS: text},
    )
    return replace(template_of(node), problems=())


def describe(group: Group) -> Described:
    """What the group itself says."""
    annotations = group.resource.metadata.annotations
    spec = group.resource.spec.template
    amounts, problems = _amounts(annotations)
    own = {key: said for key, said in spec.metadata.labels.items() if is_managed(key)}
    labels, wrong = read_labels(
        [*own.items(), *split_pairs(annotations.get(f"{CAPACITY}labels", ""))], f"{CAPACITY}labels"
    )
    taints, untaken = _taints(group)
    problems += [*wrong, *untaken]
    return Described(amounts, labels, tuple(taints), tuple(untaken), tuple(problems))


def _amounts(annotations: Mapping[str, str]) -> tuple[dict[str, Quantity], list[str]]:
    texts = {
        resource: text
        for word, resource in _AMOUNTS.items()
        if (text := annotations.get(CAPACITY + word, "").strip())
    }
    places = {resource: CAPACITY + word for word, resource in _AMOUNTS.items()}
    kind = annotations.get(f"{CAPACITY}gpu-type", "").strip()
    count = annotations.get(f"{CAPACITY}gpu-count", "").strip()
    if kind and count:
        texts[kind], places[kind] = count, f"{CAPACITY}gpu-count"
    found, problems = read_amounts(texts, places)
    # Annotations that say 0 say nothing, as they always have.
    return {name: said for name, said in found.items() if parse(said)}, problems


def _taints(group: Group) -> tuple[list[Taint], list[str]]:
    annotation = f"{CAPACITY}taints"
    said = [(one.key, one.value, one.effect) for one in group.resource.spec.template.spec.taints]
    own, problems = _read(said, "spec.template.spec.taints")
    text = group.resource.metadata.annotations.get(annotation, "")
    over, wrong = _read([_split(one) for one in text.split(",") if one.strip()], annotation)
    return merged_taints(own, over), [*problems, *wrong]


def _read(said: list[tuple[str, str, str]], place: str) -> tuple[list[Taint], list[str]]:
    found: list[Taint] = []
    problems: list[str] = []
    for key, value, effect in said:
        taint, wrong = read_taint(key, value, effect, place)
        found += [taint] if taint is not None else []
        problems += wrong
    return found, problems


def _split(text: str) -> tuple[str, str, str]:
    """`key=value:effect`."""
    pair, _, effect = text.strip().rpartition(":")
    key, _, value = pair.partition("=")
    return key, value, effect


def gpu_types(groups: list[Group]) -> frozenset[str]:
    """The GPUs that groups say they have, by their label."""
    found = (describe(one).labels.get(GPU_LABEL, "") for one in groups)
    return frozenset(filter(None, found))
