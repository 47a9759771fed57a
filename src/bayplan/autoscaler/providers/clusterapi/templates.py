"""A scalable resource as a node group, and the template of its next node.

Annotations have the minimum and maximum size. A resource without a maximum is no group. One whose
sizes cannot be read is none either, and that is reported.

The template comes from annotations, spec and the infrastructure template; annotations override the
infrastructure. Without cpu and memory there is no template, nor if a taint cannot be read: it would
fit too many pods. The annotation `csi-driver` is copied to the node.
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
    MachinePool,
    MachineSet,
    Scalable,
    is_managed,
)
from bayplan.autoscaler.providers.descriptions import (
    format_problem,
    merged_taints,
    read_amounts,
    read_labels,
    read_options,
    read_taint,
    split_pairs,
    template_node,
)
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint
from bayplan.kube.quantity import parse
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from bayplan.nodegroups import (
    CSI_DRIVERS,
    CloudNodeGroup,
    TemplateNodeInfo,
    UnimplementedError,
    template_of,
)
from bayplan.nodegroups.templates import read_limits

MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ScalableGroup:
    """A scalable resource that is a node group."""

    resource: Scalable
    group: CloudNodeGroup
    options: Mapping[str, float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupReading:
    """The group of a resource, None if it is no group; and its problems."""

    group: ScalableGroup | None
    problems: tuple[str, ...] = ()


def group_id(resource: Scalable) -> str:
    """Return the id, `MachineDeployment/namespace/name`."""
    return f"{resource.kind}/{resource.namespace}/{resource.name}"


def read_group(resource: Scalable, names: ApiNames) -> GroupReading:
    """Read the group of a resource, and the problems of its settings."""
    if _owned_by_deployment(resource) or is_paused(resource, names):
        return GroupReading(None)
    bounds, problems = _bounds(resource.metadata.annotations, names)
    if bounds is None or not bounds[1]:
        return GroupReading(None, tuple(problems))
    options, wrong = read_options(_options(resource, names), names.options)
    replicas = resource.spec.replicas
    if replicas is None:
        return GroupReading(None, (*problems, "spec.replicas: it is not set"))
    line = f"{resource.kind} {resource.name} (min: {bounds[0]}, max: {bounds[1]})"
    group = CloudNodeGroup(group_id(resource), *bounds, line, _zones(resource))
    limits = read_limits(resource.metadata.annotations.get(CSI_DRIVERS, ""))[1]
    return GroupReading(ScalableGroup(resource, group, options), (*problems, *wrong, *limits))


def _zones(resource: Scalable) -> tuple[str, ...]:
    """Return the failure domains: of a pool several, of others that of the template."""
    one = resource.spec.template.spec.failure_domain
    several = resource.spec.failure_domains if isinstance(resource, MachinePool) else ()
    return tuple(dict.fromkeys(filter(None, several or (one,))))


def is_paused(resource: Scalable, names: ApiNames) -> bool:
    """Whether Cluster API's reconciliation is paused, so that scaling would have no effect."""
    paused = names.paused in resource.metadata.annotations
    return paused or (isinstance(resource, MachineDeployment) and resource.spec.paused)


def is_rolling_out(sets: Collection[Scalable]) -> bool:
    """Whether a MachineDeployment still has machines of an older revision.

    Then a scale-down cannot choose the machine: Cluster API scales every set down.
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
    annotations: Mapping[str, str], names: ApiNames
) -> tuple[tuple[int, int] | None, list[str]]:
    found: list[int] = []
    problems: list[str] = []
    for name in (names.min_size, names.max_size):
        text = annotations.get(name, "0").strip()
        if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MOST:
            found.append(int(text))
        else:
            problems.append(format_problem(name, text, "this is not a size"))
    if problems:
        return None, problems
    least, most = found
    if least > most:
        problem = f"the minimum {least} is more than the maximum {most}"
        return None, [f"{names.max_size}: {problem}"]
    return (least, most), []


def _options(resource: Scalable, names: ApiNames) -> dict[str, str]:
    prefix = names.options
    annotations = resource.metadata.annotations.items()
    return {
        name.removeprefix(prefix): text for name, text in annotations if name.startswith(prefix)
    }


_AMOUNTS = {"cpu": CPU, "memory": MEMORY, "ephemeral-disk": EPHEMERAL_STORAGE, "maxPods": PODS}
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """The node's properties in an infrastructure template."""

    capacity: Mapping[str, str] = field(default_factory=dict)
    architecture: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """The properties of a group's next node, and their problems."""

    amounts: Mapping[str, Quantity]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unread_taints: tuple[str, ...]
    problems: tuple[str, ...]
    """All problems, including those of taints."""


def template(
    group: ScalableGroup, infrastructure: Infrastructure, architecture: str
) -> TemplateNodeInfo:
    """Build the template; UnimplementedError without cpu and memory."""
    described = describe(group)
    known, _ = read_amounts(infrastructure.capacity, infrastructure.capacity)
    amounts = {**known, **described.amounts}
    if missing := [name for name in (CPU, MEMORY) if name not in amounts]:
        problem = f"it has no annotation {CAPACITY}{missing[0]} that can be read"
        raise UnimplementedError(f"node group {group.group.id}: {problem}")
    if described.unread_taints:
        raise UnimplementedError(f"node group {group.group.id}: {described.unread_taints[0]}")
    generic = {ARCH: infrastructure.architecture or architecture}
    generic[OS] = infrastructure.system or "linux"
    text = group.resource.metadata.annotations.get(CSI_DRIVERS)
    node = template_node(
        group.group.id,
        {**generic, **described.labels},
        described.taints,
        amounts,
        annotations={} if text is None else {CSI_DRIVERS: text},
    )
    return replace(template_of(node), problems=())


def describe(group: ScalableGroup) -> NodeDescription:
    """Read the properties in the group's annotations and spec."""
    annotations = group.resource.metadata.annotations
    spec = group.resource.spec.template
    amounts, problems = _amounts(annotations)
    own = {key: value for key, value in spec.metadata.labels.items() if is_managed(key)}
    labels, wrong = read_labels(
        [*own.items(), *split_pairs(annotations.get(f"{CAPACITY}labels", ""))], f"{CAPACITY}labels"
    )
    taints, untaken = _taints(group)
    problems += [*wrong, *untaken]
    return NodeDescription(amounts, labels, tuple(taints), tuple(untaken), tuple(problems))


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
    # A value of 0 is ignored, as in Cluster Autoscaler.
    return {name: amount for name, amount in found.items() if parse(amount)}, problems


def _taints(group: ScalableGroup) -> tuple[list[Taint], list[str]]:
    annotation = f"{CAPACITY}taints"
    taints = [(one.key, one.value, one.effect) for one in group.resource.spec.template.spec.taints]
    own, problems = _read(taints, "spec.template.spec.taints")
    text = group.resource.metadata.annotations.get(annotation, "")
    over, wrong = _read([_split(one) for one in text.split(",") if one.strip()], annotation)
    return merged_taints(own, over), [*problems, *wrong]


def _read(taints: list[tuple[str, str, str]], place: str) -> tuple[list[Taint], list[str]]:
    found: list[Taint] = []
    problems: list[str] = []
    for key, value, effect in taints:
        taint, wrong = read_taint(key, value, effect, place)
        found += [taint] if taint is not None else []
        problems += wrong
    return found, problems


def _split(text: str) -> tuple[str, str, str]:
    """Split `key=value:effect`."""
    pair, _, effect = text.strip().rpartition(":")
    key, _, value = pair.partition("=")
    return key, value, effect


def gpu_types(groups: list[ScalableGroup]) -> frozenset[str]:
    """Return the GPU types in groups' labels."""
    found = (describe(one).labels.get(GPU_LABEL, "") for one in groups)
    return frozenset(filter(None, found))
