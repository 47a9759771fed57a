"""What a group launches: its instance types, and their minimum size.

Types come from a launch configuration, a launch template or a mixed instances policy, and are
cached for 20 minutes, since `$Latest` may change. For groups with instance requirements instead of
types EC2 lists the types; their nodes have at least the required vCPUs and memory. A group of
several types is described by the minimum of each resource, so that the pods fit any of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from bayplan.autoscaler.providers.aws.api_types import (
    AutoScalingGroup,
    InstanceTypeInfo,
    LaunchConfiguration,
    LaunchTemplateData,
    LaunchTemplateVersion,
    MixedPolicy,
    TemplateRef,
    checked,
)
from bayplan.autoscaler.providers.aws.sdk import Sdk
from bayplan.base.clock import Clock
from bayplan.kube.attachlimits import Ec2InstanceType, ebs_limit
from bayplan.nodegroups import NodeGroupError, UnimplementedError

_DEFAULT_ARCHITECTURES = ["x86_64"]


async def types_for(sdk: Sdk, requirements: Mapping[str, object], image: str) -> list[str]:
    """Return the instance types that meet the requirements."""
    found = await sdk.read_all(
        "ec2",
        "get_instance_types_from_instance_requirements",
        "InstanceTypes",
        ArchitectureTypes=await _architectures(sdk, image),
        VirtualizationTypes=["hvm"],
        InstanceRequirements=dict(requirements),
    )
    return [str(one.get("InstanceType", "")) for one in found if isinstance(one, dict)]


def at_least(requirements: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Return the minimum of vCPUs and of MiB of memory."""
    return _minimum(requirements.get("VCpuCount")), _minimum(requirements.get("MemoryMiB"))


def _minimum(requirement: object) -> int | None:
    least = requirement.get("Min") if isinstance(requirement, dict) else None
    return least if isinstance(least, int) and least > 0 else None


async def _architectures(sdk: Sdk, image: str) -> list[str]:
    """Return the architectures of the image."""
    if not image:
        return _DEFAULT_ARCHITECTURES
    found = await sdk.read("ec2", "describe_images", ImageIds=[image])
    images = found.get("Images") or []
    known = {str(one.get("Architecture", "")) for one in images if isinstance(one, dict)}
    return sorted(known - {""}) or _DEFAULT_ARCHITECTURES


FRESH = 1200.0
MOST_TYPES = 100
"""The maximum number of types of one group, which is EC2's page size."""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """The instance types that a group launches, and its minimum requirements."""

    types: tuple[str, ...] = ()
    cpus: int | None = None
    memory: int | None = None
    """MiB."""


class LaunchSpecs:
    """Finds the instance types that groups launch, cached."""

    def __init__(self, sdk: Sdk, clock: Clock) -> None:
        self._sdk = sdk
        self._clock = clock
        self._known: dict[bytes, tuple[float, LaunchSpec]] = {}

    async def find(self, group: AutoScalingGroup) -> LaunchSpec:
        """Return the launch spec of a group."""
        key = msgspec.json.encode(
            (group.launch_configuration_name, group.launch_template, group.mixed_instances_policy)
        )
        now = self._clock.monotonic()
        since, known = self._known.get(key, (float("-inf"), LaunchSpec()))
        if now - since < FRESH:
            return known
        found = await self._read_spec(group)
        self._known = {k: v for k, v in self._known.items() if now - v[0] < FRESH}
        self._known[key] = (now, found)
        return found

    async def _read_spec(self, group: AutoScalingGroup) -> LaunchSpec:
        if group.mixed_instances_policy is not None:
            return await self._mixed(group.mixed_instances_policy)
        if group.launch_template is not None:
            return await self._of_template(await self._template(group.launch_template), None)
        return await self._configured(group.launch_configuration_name)

    async def _mixed(self, policy: MixedPolicy) -> LaunchSpec:
        overrides = policy.launch_template.overrides
        types = tuple(one.instance_type for one in overrides if one.instance_type)
        if types:
            return LaunchSpec(types[:MOST_TYPES])
        data = await self._template(policy.launch_template.launch_template_specification)
        wanted = next((one.instance_requirements for one in overrides), None)
        return await self._of_template(data, wanted)

    async def _of_template(
        self, data: LaunchTemplateData, wanted: dict[str, object] | None
    ) -> LaunchSpec:
        requirements = wanted or data.instance_requirements
        if requirements is None:
            return LaunchSpec((data.instance_type,) if data.instance_type else ())
        types = await types_for(self._sdk, requirements, data.image_id)
        cpus, memory = at_least(requirements)
        return LaunchSpec(tuple(types[:MOST_TYPES]), cpus, memory)

    async def _configured(self, name: str) -> LaunchSpec:
        found = await self._sdk.read(
            "autoscaling", "describe_launch_configurations", LaunchConfigurationNames=[name]
        )
        read = checked(found.get("LaunchConfigurations"), LaunchConfiguration)
        return LaunchSpec(tuple(one.instance_type for one in read if one.instance_type))

    async def _template(self, ref: TemplateRef | None) -> LaunchTemplateData:
        if ref is None:
            return LaunchTemplateData()
        named = {"LaunchTemplateName": ref.launch_template_name}
        if ref.launch_template_id:
            named = {"LaunchTemplateId": ref.launch_template_id}
        found = await self._sdk.read(
            "ec2", "describe_launch_template_versions", Versions=[ref.version], **named
        )
        read = checked(found.get("LaunchTemplateVersions"), LaunchTemplateVersion)
        return read[0].launch_template_data if read else LaunchTemplateData()


_ARCHITECTURES = {"x86_64": "amd64", "i386": "386"}


@dataclass(frozen=True, slots=True)
class InstanceSize:
    """The minimum size of a group's instances."""

    name: str
    """The first of its types."""
    cpus: int
    memory: int
    """MiB."""
    gpus: int
    architecture: str
    volumes: int
    """The attach limit of EBS volumes."""


class InstanceSizes:
    """Finds the minimum size of groups' instances."""

    def __init__(self, sdk: Sdk, clock: Clock) -> None:
        self._sdk = sdk
        self._launches = LaunchSpecs(sdk, clock)
        self._types: dict[str, InstanceTypeInfo] = {}

    async def find(self, group: AutoScalingGroup) -> InstanceSize:
        """Return the instance size of a group; UnimplementedError if AWS has none."""
        launched = await self._launches.find(group)
        if not launched.types:
            raise UnimplementedError(
                f"node group {group.auto_scaling_group_name}: no instance type"
            )
        await self._learn(launched.types)
        known = [self._types[one] for one in launched.types if one in self._types]
        if not known:
            message = f"EC2 has no instance type {launched.types[0]!r}"
            raise UnimplementedError(f"node group {group.auto_scaling_group_name}: {message}")
        least = _least(known)
        cpus = least.cpus if launched.cpus is None else launched.cpus
        memory = least.memory if launched.memory is None else launched.memory
        return replace(least, cpus=cpus, memory=memory)

    async def _learn(self, types: Iterable[str]) -> None:
        unknown = [one for one in types if one not in self._types]
        if unknown:
            wanted = [{"Name": "instance-type", "Values": unknown}]
            found = await self._sdk.read_all(
                "ec2", "describe_instance_types", "InstanceTypes", Filters=wanted
            )
            self._types |= {one.instance_type: one for one in checked(found, InstanceTypeInfo)}


async def find_all(
    machines: InstanceSizes, groups: Sequence[AutoScalingGroup]
) -> list[InstanceSize | NodeGroupError]:
    """Return the instance sizes of many groups, or their errors."""

    async def one(group: AutoScalingGroup) -> InstanceSize | NodeGroupError:
        try:
            return await machines.find(group)
        except NodeGroupError as error:
            return error

    return await asyncio.gather(*map(one, groups))


def _least(types: Sequence[InstanceTypeInfo]) -> InstanceSize:
    first = types[0]
    architectures = first.processor_info.supported_architectures or ["x86_64"]
    # A type that also runs 32 bits is labelled by its 64-bit architecture.
    known = next((one for one in architectures if one != "i386"), architectures[0])
    return InstanceSize(
        first.instance_type,
        min(one.v_cpu_info.default_v_cpus for one in types),
        min(one.memory_info.size_in_mib for one in types),
        min(_gpus(one) for one in types),
        _ARCHITECTURES.get(known, known),
        min(ebs_limit(_volumes(one)) for one in types),
    )


def _gpus(one: InstanceTypeInfo) -> int:
    return sum(gpu.count for gpu in one.gpu_info.gpus if gpu.manufacturer.lower() == "nvidia")


def _volumes(one: InstanceTypeInfo) -> Ec2InstanceType:
    stores = one.instance_storage_info
    disks = sum(disk.count for disk in stores.disks) if stores.nvme_support == "required" else 0
    is_nitro = one.hypervisor != "xen"
    return Ec2InstanceType(is_nitro, one.ebs_info.maximum_ebs_attachments, nvme_stores=disks)
