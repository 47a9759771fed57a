"""The next node of a group: its machine, and its tags over that.

Where no tag says how many EBS volumes a node takes, its instance type does; but only if the cluster
has the driver, since nobody may wait for a driver that never comes.
"""

from __future__ import annotations

from bayplan.autoscaler.providers.aws.kinds import AutoScalingGroup
from bayplan.autoscaler.providers.aws.machines import Machine
from bayplan.autoscaler.providers.aws.tags import Said
from bayplan.autoscaler.providers.describing import described_node
from bayplan.kube.labels import INSTANCE_TYPE, REGION, ZONE
from bayplan.kube.meta import Quantity
from bayplan.kube.resources import CPU, MEMORY
from bayplan.nodegroups import (
    CSI_DRIVERS,
    NotOfferedError,
    Template,
    limits_text,
    template_of,
)
from bayplan.nodegroups.templates import Limits, csi_limits

EBS_DRIVER = "ebs.csi.aws.com"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GPU = "nvidia.com/gpu"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"


def template(
    group: AutoScalingGroup, machine: Machine, said: Said, region: str, *, has_ebs: bool
) -> Template:
    """The template; NotOfferedError if it would promise too much."""
    name = group.auto_scaling_group_name
    if said.unread_taints:
        raise NotOfferedError(f"node group {name}: {said.unread_taints[0]}")
    amounts = {**_amounts(machine), **said.amounts}
    labels = {**_labels(group, machine), REGION: region, **said.labels}
    plain = template_of(described_node(name, labels, said.taints, amounts))
    limits: Limits = {EBS_DRIVER: machine.volumes} if has_ebs else {}
    limits |= csi_limits(plain.csi_node) | said.limits
    limits = {driver: limit for driver, limit in limits.items() if driver not in said.unread_limits}
    if not limits and plain.csi_node is None and not said.unread_limits:
        return plain
    notes = {CSI_DRIVERS: limits_text(limits)}
    return template_of(described_node(name, labels, said.taints, amounts, annotations=notes))


def _amounts(machine: Machine) -> dict[str, Quantity]:
    gpus: dict[str, Quantity] = {GPU: machine.gpus} if machine.gpus else {}
    return {CPU: machine.cpus, MEMORY: f"{machine.memory}Mi", **gpus}


def _labels(group: AutoScalingGroup, machine: Machine) -> dict[str, str]:
    labels = {ARCH: machine.architecture, OS: "linux", INSTANCE_TYPE: machine.name}
    if not group.availability_zones:
        return labels
    zone = group.availability_zones[0]
    return {**labels, ZONE: zone, EBS_ZONE: zone}
