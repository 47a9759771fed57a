"""AWS's answers, as far as they are read; everything in them is checked."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec

from bayplan.nodegroups import UnavailableError

T = TypeVar("T")


class Answer(msgspec.Struct, rename="pascal", kw_only=True):
    """Base: AWS's names begin with a capital."""


class Tag(Answer):
    """A tag of a group."""

    key: str
    value: str = ""


class Member(Answer):
    """An instance as its group knows it."""

    instance_id: str
    availability_zone: str = ""
    lifecycle_state: str = ""


class TemplateRef(Answer):
    """A launch template, by name or by id."""

    launch_template_id: str = ""
    launch_template_name: str = ""
    version: str = "$Default"


class Override(Answer):
    """One of the types of a mixed group."""

    instance_type: str = ""
    instance_requirements: dict[str, object] | None = None


class MixedTemplate(Answer):
    """What a mixed group launches."""

    launch_template_specification: TemplateRef | None = None
    overrides: list[Override] = []


class MixedPolicy(Answer):
    """How a mixed group launches."""

    launch_template: MixedTemplate = msgspec.field(default_factory=MixedTemplate)


class AutoScalingGroup(Answer):
    """A group."""

    auto_scaling_group_name: str
    min_size: int
    max_size: int
    desired_capacity: int
    availability_zones: list[str] = []
    instances: list[Member] = []
    tags: list[Tag] = []
    launch_configuration_name: str = ""
    launch_template: TemplateRef | None = None
    mixed_instances_policy: MixedPolicy | None = None
    status: str = ""
    """Said only of a group that is being deleted."""


class Activity(Answer):
    """Something that a group did or tried."""

    status_code: str = ""
    status_message: str = ""
    description: str = ""
    start_time: datetime | None = None


class LaunchConfiguration(Answer):
    """What older groups launch."""

    launch_configuration_name: str
    instance_type: str = ""


class LaunchTemplateData(Answer):
    """What a launch template says."""

    instance_type: str = ""
    image_id: str = ""
    instance_requirements: dict[str, object] | None = None


class LaunchTemplateVersion(Answer):
    """A version of a launch template."""

    launch_template_data: LaunchTemplateData = msgspec.field(default_factory=LaunchTemplateData)


class VCpuInfo(Answer):
    """Processors of a type."""

    default_v_cpus: int = msgspec.field(default=0, name="DefaultVCpus")


class MemoryInfo(Answer):
    """Memory of a type."""

    size_in_mib: int = msgspec.field(default=0, name="SizeInMiB")


class ProcessorInfo(Answer):
    """What kind of processor."""

    supported_architectures: list[str] = []


class GpuDevice(Answer):
    """GPUs of one kind."""

    count: int = 0
    manufacturer: str = ""


class GpuInfo(Answer):
    """GPUs of a type."""

    gpus: list[GpuDevice] = []


class EbsInfo(Answer):
    """What a type can do with volumes."""

    maximum_ebs_attachments: int | None = None


class Disk(Answer):
    """Instance stores of one kind."""

    count: int = 0


class InstanceStorageInfo(Answer):
    """Instance stores of a type."""

    disks: list[Disk] = []
    nvme_support: str = ""


class InstanceTypeInfo(Answer):
    """An instance type."""

    instance_type: str
    hypervisor: str = ""
    v_cpu_info: VCpuInfo = msgspec.field(default_factory=VCpuInfo, name="VCpuInfo")
    memory_info: MemoryInfo = msgspec.field(default_factory=MemoryInfo)
    processor_info: ProcessorInfo = msgspec.field(default_factory=ProcessorInfo)
    gpu_info: GpuInfo = msgspec.field(default_factory=GpuInfo)
    ebs_info: EbsInfo = msgspec.field(default_factory=EbsInfo)
    instance_storage_info: InstanceStorageInfo = msgspec.field(default_factory=InstanceStorageInfo)


def checked(items: object, kind: type[T]) -> list[T]:
    """Items of an answer; UnavailableError if they are not what AWS defines."""
    try:
        return [msgspec.convert(one, kind) for one in msgspec.convert(items or [], list[object])]
    except msgspec.ValidationError as problem:
        raise UnavailableError(f"AWS's answer cannot be read: {problem}") from problem
