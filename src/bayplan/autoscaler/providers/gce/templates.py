"""The template of a group's next node: its machine type, and the metadata of its template.

Not all memory of a machine is for pods: the kernel keeps some, and the kubelet reserves what its
configuration has. Compute Engine does not know either; the kernel's part is Cluster Autoscaler's
estimate. A group without a kube-env has no reservations that are known, and all is allocatable.

Without a declared limit, that of persistent disks comes from the machine type by a table, if the
cluster has the driver: nodes must not wait for a driver that never registers. It is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from bayplan.autoscaler.providers.descriptions import template_node
from bayplan.autoscaler.providers.gce.kube_env import EnvValues
from bayplan.autoscaler.providers.gce.launch import LOCAL_SSD_GB, MachineSize, MigLaunch
from bayplan.autoscaler.providers.gce.refs import MigRef
from bayplan.kube.labels import HOSTNAME, INSTANCE_TYPE, REGION, ZONE
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.pdlimits import PD_DRIVER, pd_limit
from bayplan.kube.quantity import QuantityError, milli_value, value
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from bayplan.nodegroups import (
    CSI_DRIVERS,
    TemplateNodeInfo,
    UnimplementedError,
    limits_text,
    template_of,
)
from bayplan.nodegroups.templates import Limits, csi_limits

PD_ZONE = "topology.gke.io/zone"
GPU = "nvidia.com/gpu"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
PODS_LABEL = "cloud.google.com/gke-max-pods-per-node"
_MIB, _GIB = 1 << 20, 1 << 30
_EVICTION_MEMORY, _EVICTION_SHARE = "100Mi", 0.1
"""The kubelet's hard eviction thresholds on GCE, if the metadata has none."""


def template(
    ref: MigRef, zones: tuple[str, ...], launch: MigLaunch, *, has_driver: bool
) -> TemplateNodeInfo:
    """Build the template; UnimplementedError if a taint cannot be read."""
    env = launch.template.env
    if env.blockers:
        raise UnimplementedError(f"node group {ref.id}: {env.blockers[0]}")
    node = _node(ref, zones, launch)
    plain = template_of(node)
    table = _table_limits(launch.size, node.metadata.labels) if has_driver else {}
    limits: Limits = {**table, **csi_limits(plain.csi_node), **env.limits}
    limits = {driver: limit for driver, limit in limits.items() if driver not in env.unread_limits}
    if not limits and plain.csi_node is None and not env.unread_limits:
        return plain
    notes = {**node.metadata.annotations, CSI_DRIVERS: limits_text(limits)}
    meta = msgspec.structs.replace(node.metadata, annotations=notes)
    estimated = (table.keys() & limits.keys()) - env.limits.keys()
    found = template_of(msgspec.structs.replace(node, metadata=meta))
    return replace(found, estimated=frozenset(estimated))


def _table_limits(size: MachineSize, labels: Mapping[str, str]) -> Limits:
    return {PD_DRIVER: min(pd_limit(one, labels).count for one in size.types)}


def _node(ref: MigRef, zones: tuple[str, ...], launch: MigLaunch) -> Node:
    env = launch.template.env
    labels = {**env.labels, **_labels(ref, zones, launch.size, env)}
    capacity = _capacity(launch, labels)
    node = template_node(ref.id, labels, env.taints, capacity)
    if env.reserved is None:
        return node
    allocatable = {**node.status.allocatable, **_allocatable(capacity, env.reserved, env.eviction)}
    status = msgspec.structs.replace(node.status, allocatable=allocatable)
    return msgspec.structs.replace(node, status=status)


def _labels(
    ref: MigRef, zones: tuple[str, ...], size: MachineSize, env: EnvValues
) -> dict[str, str]:
    architecture = env.architecture or ("arm64" if size.architecture == "ARM64" else "amd64")
    # The group's id, of which the name is made, is longer than a label may be.
    labels = {
        HOSTNAME: f"template-node-for-{ref.name}"[:63].rstrip("-"),
        ARCH: architecture,
        OS: env.system,
        INSTANCE_TYPE: size.types[0],
        REGION: ref.region,
    }
    return {**labels, ZONE: zones[0], PD_ZONE: zones[0]} if zones else labels


def _capacity(launch: MigLaunch, labels: Mapping[str, str]) -> dict[str, Quantity]:
    size, env = launch.size, launch.template.env
    is_arm = labels[ARCH] == "arm64"
    memory = size.memory * _MIB
    if env.system == "linux":
        memory -= kernel_memory(memory, env.distribution, is_arm=is_arm)
    amounts: dict[str, Quantity] = {CPU: size.cpus, MEMORY: memory, **env.resources}
    pods = labels.get(PODS_LABEL, "")
    amounts |= {PODS: int(pods)} if pods.isascii() and pods.isdecimal() and len(pods) < 5 else {}
    amounts |= {GPU: size.gpus} if size.gpus else {}
    storage = _ephemeral_storage(launch, is_arm=is_arm)
    return amounts | ({EPHEMERAL_STORAGE: storage} if storage else {})


def kernel_memory(memory: int, distribution: str, *, is_arm: bool) -> int:
    """Return the bytes that Linux keeps for itself: Cluster Autoscaler's estimate."""
    kept = memory // 64 + 16 * _MIB
    kept += 64 * _MIB if memory > 3 * _GIB else 0
    kept += 8 * _MIB if memory <= 8 * _GIB else 0
    if distribution in ("cos", "ubuntu"):
        kept += int(min(0.00175 * memory, 248 * _MIB))
    if distribution == "ubuntu":
        return kept + 4 * _MIB
    return round(kept * 0.9971) if distribution == "cos" and is_arm else kept


def _ephemeral_storage(launch: MigLaunch, *, is_arm: bool) -> int:
    """Return the bytes for pods on the boot disk, or on local SSDs; 0 if they are unknown."""
    found, env = launch.template, launch.template.env
    if env.local_ssds:
        # A file system takes up to 2% of each local SSD.
        return min(env.local_ssds, found.local_ssds) * LOCAL_SSD_GB * _GIB * 98 // 100
    if not env.uses_boot_disk or not found.boot_disk_gb:
        return 0
    disk = found.boot_disk_gb * _GIB
    return max(0, disk - _system_partition(disk, env.distribution, is_arm=is_arm))


def _system_partition(disk: int, distribution: str, *, is_arm: bool) -> int:
    """Return the bytes of a boot disk that the system uses: Cluster Autoscaler's estimates."""
    buffer = int(min(100 * _MIB, 0.001 * disk))
    if distribution == "cos":
        return int(0.015635 * disk + 4.148 * _GIB) + buffer + (64 * _MIB if is_arm else 0)
    if distribution == "ubuntu":
        return int(0.03083 * disk + 0.171 * _GIB) + buffer
    return int(0.1233 * _GIB)


def _allocatable(
    capacity: Mapping[str, Quantity], reserved: Mapping[str, Quantity], eviction: Mapping[str, str]
) -> dict[str, Quantity]:
    """Return what is left for pods, by the kubelet's rules."""
    cpu = milli_value(capacity[CPU]) - milli_value(reserved.get(CPU, 0))
    memory = value(capacity[MEMORY]) - value(reserved.get(MEMORY, 0))
    memory -= _memory_threshold(eviction.get("memory.available", ""))
    left: dict[str, Quantity] = {CPU: f"{max(0, cpu)}m", MEMORY: max(0, memory)}
    if EPHEMERAL_STORAGE in capacity:
        disk = value(capacity[EPHEMERAL_STORAGE])
        kept = int(disk * _share(eviction.get("nodefs.available", "")))
        left[EPHEMERAL_STORAGE] = max(0, disk - kept - value(reserved.get(EPHEMERAL_STORAGE, 0)))
    return left


def _memory_threshold(text: str) -> int:
    try:
        return max(0, value(text or _EVICTION_MEMORY))
    except QuantityError:
        return value(_EVICTION_MEMORY)


def _share(text: str) -> float:
    number = text.removesuffix("%")
    if not text.endswith("%") or not number.isascii() or not number.isdecimal():
        return _EVICTION_SHARE
    return int(number) / 100 if int(number) <= 100 else _EVICTION_SHARE
