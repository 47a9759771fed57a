"""The machines that a group launches, and how large they are at least.

A group of several types is described by the least of each resource, so that whatever it launches
can hold what was promised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bayplan.autoscaler.providers.aws.kinds import AutoScalingGroup, InstanceTypeInfo, checked
from bayplan.autoscaler.providers.aws.launching import Launches
from bayplan.autoscaler.providers.aws.sdk import Sdk
from bayplan.base.clock import Clock
from bayplan.kube.attachlimits import Ec2Machine, ebs_limit
from bayplan.nodegroups import NodeGroupError, NotOfferedError

_ARCHITECTURES = {"x86_64": "amd64", "i386": "386"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a group launches, at least."""

    name: str
    """The first of its types."""
    cpus: int
    memory: int
    """MiB."""
    gpus: int
    architecture: str
    volumes: int
    """EBS volumes that can be attached."""


class Machines:
    """Finds out what groups launch."""

    def __init__(self, sdk: Sdk, clock: Clock) -> None:
        self._sdk = sdk
        self._launches = Launches(sdk, clock)
        self._types: dict[str, InstanceTypeInfo] = {}

    async def find(self, group: AutoScalingGroup) -> Machine:
        """The machine of a group; NotOfferedError if AWS tells of none."""
        launched = await self._launches.find(group)
        if not launched.types:
            raise NotOfferedError(f"node group {group.auto_scaling_group_name}: no instance type")
        await self._learn(launched.types)
        known = [self._types[one] for one in launched.types if one in self._types]
        if not known:
            said = f"EC2 knows no instance type {launched.types[0]!r}"
            raise NotOfferedError(f"node group {group.auto_scaling_group_name}: {said}")
        least = _least(known)
        cpus = least.cpus if launched.cpus is None else launched.cpus
        memory = least.memory if launched.memory is None else launched.memory
        return replace(least, cpus=cpus, memory=memory)

    async def _learn(self, types: Iterable[str]) -> None:
        unknown = [one for one in types if one not in self._types]
        if unknown:
            wanted = [{"Name": "instance-type", "Values": unknown}]
            found = await self._sdk.ask_all(
                "ec2", "describe_instance_types", "InstanceTypes", Filters=wanted
            )
            self._types |= {one.instance_type: one for one in checked(found, InstanceTypeInfo)}


async def find_all(
    machines: Machines, groups: Sequence[AutoScalingGroup]
) -> list[Machine | NodeGroupError]:
    """The machines of many groups, or why they are not known."""

    async def one(group: AutoScalingGroup) -> Machine | NodeGroupError:
        try:
            return await machines.find(group)
        except NodeGroupError as error:
            return error

    return await asyncio.gather(*map(one, groups))


def _least(types: Sequence[InstanceTypeInfo]) -> Machine:
    first = types[0]
    architectures = first.processor_info.supported_architectures or ["x86_64"]
    # A type that also runs 32 bits is not known by them.
    known = next((one for one in architectures if one != "i386"), architectures[0])
    return Machine(
        first.instance_type,
        min(one.v_cpu_info.default_v_cpus for one in types),
        min(one.memory_info.size_in_mib for one in types),
        min(_gpus(one) for one in types),
        _ARCHITECTURES.get(known, known),
        min(ebs_limit(_volumes(one)) for one in types),
    )


def _gpus(one: InstanceTypeInfo) -> int:
    return sum(gpu.count for gpu in one.gpu_info.gpus if gpu.manufacturer.lower() == "nvidia")


def _volumes(one: InstanceTypeInfo) -> Ec2Machine:
    stores = one.instance_storage_info
    disks = sum(disk.count for disk in stores.disks) if stores.nvme_support == "required" else 0
    is_nitro = one.hypervisor != "xen"
    return Ec2Machine(is_nitro, one.ebs_info.maximum_ebs_attachments, nvme_stores=disks)
