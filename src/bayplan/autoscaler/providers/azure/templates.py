"""The template of a scale set's next node: its VM size, overridden by its tags.

    k8s.io_cluster-autoscaler_node-template_label_<key>                = value
    k8s.io_cluster-autoscaler_node-template_taint_<key>                = value:effect
    k8s.io_cluster-autoscaler_node-template_resources_<name>           = quantity
    k8s.io_cluster-autoscaler_node-template_autoscaling-options_<name> = value
    k8s.io_cluster-autoscaler_node-template_csi-driver_<driver>        = count, or none

The last is Bayplan's, the others are Cluster Autoscaler's. Azure's tags cannot have a slash: `_`
stands for it, and `~2` for an underscore. Without a tag, the attach limit of Azure disks comes from
the VM size, but only if the cluster has the driver: nodes must not wait for a driver that never
registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bayplan.autoscaler.providers.azure.api_types import ScaleSet
from bayplan.autoscaler.providers.azure.skus import VmSize
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
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from bayplan.nodegroups import (
    CSI_DRIVERS,
    TemplateNodeInfo,
    UnimplementedError,
    limits_text,
    template_of,
)
from bayplan.nodegroups.templates import Limits, csi_limits, parse_limits

_TEMPLATE = "k8s.io_cluster-autoscaler_node-template_"
LABEL, TAINT, RESOURCE, OPTION, DRIVER = (
    f"{_TEMPLATE}{word}_"
    for word in ("label", "taint", "resources", "autoscaling-options", "csi-driver")
)


@dataclass(frozen=True, slots=True)
class ScaleSetTags:
    """The values in a scale set's tags, and their problems."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unread_taints: tuple[str, ...]
    amounts: Mapping[str, Quantity]
    options: Mapping[str, float | bool]
    limits: Limits
    unread_limits: frozenset[str]
    """Drivers whose limit cannot be read: they are left out, also if the VM size has one."""
    problems: tuple[str, ...]


def read_scale_set_tags(tags: Mapping[str, str]) -> ScaleSetTags:
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
    return ScaleSetTags(
        labels,
        tuple(taints),
        tuple(wrong_taints),
        amounts,
        options,
        limits,
        frozenset(drivers) - limits.keys(),
        problems,
    )


def _under(tags: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the tags with a prefix, by the names that they stand for."""
    found = {k.removeprefix(prefix): v.strip() for k, v in tags.items() if k.startswith(prefix)}
    return {k.replace("_", "/").replace("~2", "_"): v for k, v in found.items() if k}


def _taints(tags: Mapping[str, str]) -> tuple[list[Taint], list[str]]:
    found: list[Taint] = []
    problems: list[str] = []
    for key, text in tags.items():
        value, _, effect = text.rpartition(":")
        taint, wrong = read_taint(key, value, effect, f"tag {TAINT}{key}")
        found += [taint] if taint is not None else []
        problems += wrong
    return found, problems


DISK_DRIVER = "disk.csi.azure.com"
DISK_ZONE = "topology.disk.csi.azure.com/zone"
GPU_LABEL, OLD_GPU_LABEL = "kubernetes.azure.com/accelerator", "accelerator"
POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool")
POOL_TAGS = ("aks-managed-poolName", "poolName")
GPU, FPGA = "nvidia.com/gpu", "xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_2_1-0"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
NO_ZONE = "0"
"""The zone label of nodes outside of zones."""


def zones_of(scale_set: ScaleSet) -> tuple[str, ...]:
    """Return the zones of a scale set, as nodes are labelled."""
    return tuple(f"{scale_set.location.lower()}-{zone}" for zone in scale_set.zones)


def template(
    scale_set: ScaleSet, size: VmSize, tags: ScaleSetTags, *, has_disks: bool
) -> TemplateNodeInfo:
    """Build the template; UnimplementedError if a taint cannot be read."""
    name = scale_set.name
    if tags.unread_taints:
        raise UnimplementedError(f"node group {name}: {tags.unread_taints[0]}")
    amounts = {**_amounts(scale_set, size), **tags.amounts}
    labels = {**_labels(scale_set, size), **tags.labels}
    plain = template_of(template_node(name, labels, tags.taints, amounts))
    declared = csi_limits(plain.csi_node) | tags.limits
    estimated: Limits = {DISK_DRIVER: size.disks} if has_disks else {}
    unread = tags.unread_limits
    limits = {k: v for k, v in (estimated | declared).items() if k not in unread}
    if not limits and plain.csi_node is None and not unread:
        return plain
    notes = {CSI_DRIVERS: limits_text(limits)}
    made = template_of(template_node(name, labels, tags.taints, amounts, annotations=notes))
    return replace(made, estimated=frozenset(estimated.keys() & limits.keys() - declared.keys()))


def _amounts(scale_set: ScaleSet, size: VmSize) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {CPU: size.cpus, MEMORY: f"{size.memory}Mi"}
    if size.gpus:
        amounts[FPGA if _has_fpgas(size) else GPU] = size.gpus
    if disk := scale_set.properties.virtual_machine_profile.storage_profile.os_disk.disk_size:
        amounts[EPHEMERAL_STORAGE] = f"{disk}Gi"
    return amounts


def _labels(scale_set: ScaleSet, size: VmSize) -> dict[str, str]:
    zones = zones_of(scale_set)
    labels = {
        ARCH: size.architecture,
        OS: "windows" if _is_windows(scale_set) else "linux",
        INSTANCE_TYPE: scale_set.sku.name,
        REGION: scale_set.location.lower(),
        ZONE: zones[0] if zones else NO_ZONE,
        DISK_ZONE: zones[0] if zones else "",
    }
    if size.gpus and not _has_fpgas(size):
        labels |= {GPU_LABEL: "nvidia", OLD_GPU_LABEL: "nvidia"}
    pool = next((scale_set.tags[tag] for tag in POOL_TAGS if scale_set.tags.get(tag)), "")
    valid, _ = read_labels(((key, pool) for key in POOL_LABELS if pool), "tag")
    return labels | valid


def _has_fpgas(size: VmSize) -> bool:
    """Whether what the SKU lists as GPUs are FPGAs: the NP series."""
    return size.name.lower().startswith("standard_np")


def _is_windows(scale_set: ScaleSet) -> bool:
    profile = scale_set.properties.virtual_machine_profile
    return profile.os_profile.windows_configuration is not None
