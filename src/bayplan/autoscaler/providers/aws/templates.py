"""The template of a group's next node: its instance type, overridden by its tags.

    k8s.io/cluster-autoscaler/node-template/label/<key>                = value
    k8s.io/cluster-autoscaler/node-template/taint/<key>                = value:effect
    k8s.io/cluster-autoscaler/node-template/resources/<name>           = quantity
    k8s.io/cluster-autoscaler/node-template/autoscaling-options/<name> = value
    k8s.io/cluster-autoscaler/node-template/csi-driver/<driver>        = count, or none

The last is Bayplan's, the others are Cluster Autoscaler's. Without a tag, the attach limit of EBS
volumes comes from the instance type, but only if the cluster has the driver: nodes must not wait
for a driver that never registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.providers.aws.api_types import AutoScalingGroup, Tag
from bayplan.autoscaler.providers.aws.launch import InstanceSize
from bayplan.autoscaler.providers.descriptions import (
    read_amounts,
    read_labels,
    read_options,
    read_taint,
    template_node,
)
from bayplan.kube.labels import INSTANCE_TYPE, REGION, ZONE
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint
from bayplan.kube.resources import CPU, MEMORY
from bayplan.nodegroups import (
    CSI_DRIVERS,
    TemplateNodeInfo,
    UnimplementedError,
    limits_text,
    template_of,
)
from bayplan.nodegroups.templates import Limits, csi_limits, parse_limits

_TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
LABEL, TAINT, RESOURCE, OPTION, DRIVER = (
    f"{_TEMPLATE}{word}/"
    for word in ("label", "taint", "resources", "autoscaling-options", "csi-driver")
)


@dataclass(frozen=True, slots=True)
class TagValues:
    """The values in tags, and their problems."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unread_taints: tuple[str, ...]
    amounts: Mapping[str, Quantity]
    options: Mapping[str, float | bool]
    limits: Limits
    unread_limits: frozenset[str]
    """Drivers whose limit cannot be read: they are left out, also if the instance type has one."""
    problems: tuple[str, ...]


def read_tags(tags: Sequence[Tag]) -> TagValues:
    """Read the values of all tags."""
    labels, wrong_labels = read_labels(_under(tags, LABEL).items(), f"tag {LABEL[:-1]}")
    taints, wrong_taints = _taints(_under(tags, TAINT))
    resources = _under(tags, RESOURCE)
    places = {name: f"tag {RESOURCE}{name}" for name in resources}
    amounts, wrong_amounts = read_amounts(resources, places)
    options, wrong_options = read_options(_under(tags, OPTION), f"tag {OPTION}")
    drivers = _under(tags, DRIVER)
    limits, wrong_limits = parse_limits(drivers, f"tag {DRIVER}")
    problems = (*wrong_labels, *wrong_taints, *wrong_amounts, *wrong_options, *wrong_limits)
    return TagValues(
        labels,
        tuple(taints),
        tuple(wrong_taints),
        amounts,
        options,
        limits,
        frozenset(drivers) - limits.keys(),
        problems,
    )


def _under(tags: Sequence[Tag], prefix: str) -> dict[str, str]:
    found = {one.key.removeprefix(prefix): one.value for one in tags if one.key.startswith(prefix)}
    return {name: value.strip() for name, value in found.items() if name}


def _taints(tags: Mapping[str, str]) -> tuple[list[Taint], list[str]]:
    found: list[Taint] = []
    problems: list[str] = []
    for key, text in tags.items():
        value, _, effect = text.rpartition(":")
        taint, wrong = read_taint(key, value, effect, f"tag {TAINT}{key}")
        found += [taint] if taint is not None else []
        problems += wrong
    return found, problems


EBS_DRIVER = "ebs.csi.aws.com"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GPU = "nvidia.com/gpu"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"


def template(
    group: AutoScalingGroup, machine: InstanceSize, tags: TagValues, region: str, *, has_ebs: bool
) -> TemplateNodeInfo:
    """Build the template; UnimplementedError if a taint cannot be read."""
    name = group.auto_scaling_group_name
    if tags.unread_taints:
        raise UnimplementedError(f"node group {name}: {tags.unread_taints[0]}")
    amounts = {**_amounts(machine), **tags.amounts}
    labels = {**_labels(group, machine), REGION: region, **tags.labels}
    plain = template_of(template_node(name, labels, tags.taints, amounts))
    limits: Limits = {EBS_DRIVER: machine.volumes} if has_ebs else {}
    limits |= csi_limits(plain.csi_node) | tags.limits
    limits = {driver: limit for driver, limit in limits.items() if driver not in tags.unread_limits}
    if not limits and plain.csi_node is None and not tags.unread_limits:
        return plain
    notes = {CSI_DRIVERS: limits_text(limits)}
    return template_of(template_node(name, labels, tags.taints, amounts, annotations=notes))


def _amounts(machine: InstanceSize) -> dict[str, Quantity]:
    gpus: dict[str, Quantity] = {GPU: machine.gpus} if machine.gpus else {}
    return {CPU: machine.cpus, MEMORY: f"{machine.memory}Mi", **gpus}


def _labels(group: AutoScalingGroup, machine: InstanceSize) -> dict[str, str]:
    labels = {ARCH: machine.architecture, OS: "linux", INSTANCE_TYPE: machine.name}
    if not group.availability_zones:
        return labels
    zone = group.availability_zones[0]
    return {**labels, ZONE: zone, EBS_ZONE: zone}
