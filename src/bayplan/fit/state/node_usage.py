"""What nodes have or use besides resources: host ports, disks, images and device objects.

Ports and disks are kept by port and disk, so that asking about one looks only at nodes that use it.
An EBS volume is never shared by two pods of a node; GCE disks, iSCSI targets and RBD images are, if
all mount them read-only. An RBD image is the same if any of its monitors is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.fit.signatures.signature import HostPort, normalized_image
from bayplan.kube.devices import EXTENDED_PREFIX, DeviceClass, ResourceClaim
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volumes import Volume

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the wildcard of the Kubernetes API, not a listening socket

Use = Counter[tuple[int, str]]


class HostPorts:
    """Which nodes use which ports of theirs, on which addresses."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], Use] = {}

    def take(self, slot: int, ports: Iterable[HostPort], sign: int) -> None:
        """A pod with these ports comes (+1) or leaves (-1)."""
        for port in ports:
            users = self._users.setdefault((port.protocol, port.port), Counter())
            users[slot, port.ip] += sign
            if not users[slot, port.ip]:
                del users[slot, port.ip]

    def conflicting(self, ports: Iterable[HostPort]) -> set[int]:
        """The slots where at least one of these ports is taken."""
        return {
            slot
            for port in ports
            for slot, address in self._users.get((port.protocol, port.port), ())
            if _meet(address, port.ip)
        }


def clash(one: HostPort, other: HostPort) -> bool:
    """Whether two pods on one node cannot both have these ports."""
    same = one.protocol == other.protocol and one.port == other.port
    return same and _meet(one.ip, other.ip)


def _meet(address: str, other: str) -> bool:
    return ANY_ADDRESS in (address, other) or address == other


class InlineDisk(NamedTuple):
    """A disk as one pod mounts it."""

    name: tuple[str, ...]
    read_only: bool


def disks_of(pod: Pod) -> tuple[InlineDisk, ...]:
    """The disks that a pod names directly."""
    return tuple(
        [
            disk
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is None
            for disk in _disks(volume)
        ]
    )


def _disks(volume: Volume) -> Iterable[InlineDisk]:
    if volume.gce_persistent_disk is not None:
        gce = volume.gce_persistent_disk
        yield InlineDisk(("gce", gce.pd_name), gce.read_only)
    if volume.aws_elastic_block_store is not None:
        yield InlineDisk(("aws", volume.aws_elastic_block_store.volume_id), read_only=False)
    if volume.iscsi is not None:
        yield InlineDisk(("iscsi", volume.iscsi.iqn), volume.iscsi.read_only)
    if volume.rbd is not None:
        rbd = volume.rbd
        for monitor in rbd.monitors:
            yield InlineDisk(("rbd", monitor, rbd.pool, rbd.image), rbd.read_only)


class MountedDisks:
    """Which nodes have which disks mounted, and how."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, ...], Counter[tuple[int, bool]]] = {}

    def take(self, slot: int, disks: Iterable[InlineDisk], sign: int) -> None:
        """A pod with these disks comes (+1) or leaves (-1)."""
        for disk in disks:
            users = self._users.setdefault(disk.name, Counter())
            users[slot, disk.read_only] += sign
            if not users[slot, disk.read_only]:
                del users[slot, disk.read_only]
                if not users:
                    del self._users[disk.name]

    def conflicting(self, disks: Iterable[InlineDisk]) -> set[int]:
        """The slots where one of these disks is mounted in a way that excludes this one."""
        return {
            slot
            for disk in disks
            for slot, read_only in self._users.get(disk.name, ())
            if not (disk.read_only and read_only)
        }


LARGEST_IMAGE = 1 << 40
"""No image counts for more: far above where the score stops, and no sum of them can wrap."""


class ImageHolders:
    """Image name → size by slot."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}

    def set_node(self, slot: int, node: Node, *, present: bool) -> None:
        """A node comes to the slot or leaves it."""
        for image in node.status.images:
            for name in image.names:
                holders = self._sizes.setdefault(name, {})
                if present:
                    holders[slot] = min(max(image.size_bytes, 0), LARGEST_IMAGE)
                else:
                    holders.pop(slot, None)
                    if not holders:
                        del self._sizes[name]

    def holders(self, image: str) -> dict[int, int]:
        """The slots that have an image, with its size there."""
        return self._sizes.get(normalized_image(image), {})


class DeviceObjects:
    """ResourceClaims and DeviceClasses."""

    def __init__(self, *, are_known: bool) -> None:
        self.are_known = are_known
        """Whether all of them are put here; if not, no pod with claims can be judged."""
        self.claims: dict[str, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}

    def serves(self, resource: str) -> bool:
        """Whether devices can be had under the name of an extended resource."""
        if not self.classes:
            return False
        if resource.removeprefix(EXTENDED_PREFIX) in self.classes:
            return resource.startswith(EXTENDED_PREFIX)
        return any(one.spec.extended_resource_name == resource for one in self.classes.values())
