"""AWS's responses, as far as they are read; all fields are validated."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec

from bayplan.nodegroups import ProviderUnavailableError

T = TypeVar("T")


class AwsStruct(msgspec.Struct, rename="pascal", kw_only=True):
    """Base of AWS's structures: field names are in Pascal case."""


class Tag(AwsStruct):
    """A tag of a group."""

    key: str
    value: str = ""


class AsgInstance(AwsStruct):
    """An instance of an Auto Scaling group."""

    instance_id: str
    availability_zone: str = ""
    lifecycle_state: str = ""


class TemplateRef(AwsStruct):
    """A launch template, by name or by id."""

    launch_template_id: str = ""
    launch_template_name: str = ""
    version: str = "$Default"


class Override(AwsStruct):
    """An instance type of a mixed instances group."""

    instance_type: str = ""
    weighted_capacity: str = ""
    instance_requirements: dict[str, object] | None = None


class MixedTemplate(AwsStruct):
    """The launch template and overrides of a mixed instances group."""

    launch_template_specification: TemplateRef | None = None
    overrides: list[Override] = []


class MixedPolicy(AwsStruct):
    """The mixed instances policy of a group."""

    launch_template: MixedTemplate = msgspec.field(default_factory=MixedTemplate)


class AutoScalingGroup(AwsStruct):
    """An Auto Scaling group."""

    auto_scaling_group_name: str
    min_size: int
    max_size: int
    desired_capacity: int
    desired_capacity_type: str = ""
    availability_zones: list[str] = []
    instances: list[AsgInstance] = []
    tags: list[Tag] = []
    launch_configuration_name: str = ""
    launch_template: TemplateRef | None = None
    mixed_instances_policy: MixedPolicy | None = None
    status: str = ""
    """Set only on a group that is being deleted."""


class ScalingActivity(AwsStruct):
    """A scaling activity of a group."""

    status_code: str = ""
    status_message: str = ""
    description: str = ""
    start_time: datetime | None = None


class LaunchConfiguration(AwsStruct):
    """A launch configuration, the predecessor of launch templates."""

    launch_configuration_name: str
    instance_type: str = ""


class LaunchTemplateData(AwsStruct):
    """The data of a launch template version."""

    instance_type: str = ""
    image_id: str = ""
    instance_requirements: dict[str, object] | None = None


class LaunchTemplateVersion(AwsStruct):
    """A version of a launch template."""

    launch_template_data: LaunchTemplateData = msgspec.field(default_factory=LaunchTemplateData)


class VCpuInfo(AwsStruct):
    """vCPUs of an instance type."""

    default_v_cpus: int = msgspec.field(default=0, name="DefaultVCpus")


class MemoryInfo(AwsStruct):
    """Memory of an instance type."""

    size_in_mib: int = msgspec.field(default=0, name="SizeInMiB")


class ProcessorInfo(AwsStruct):
    """Processor of an instance type."""

    supported_architectures: list[str] = []


class GpuDevice(AwsStruct):
    """GPUs of one model."""

    count: int = 0
    manufacturer: str = ""


class GpuInfo(AwsStruct):
    """GPUs of an instance type."""

    gpus: list[GpuDevice] = []


class EbsInfo(AwsStruct):
    """EBS attachments of an instance type."""

    maximum_ebs_attachments: int | None = None


class Disk(AwsStruct):
    """Instance store disks of one size."""

    count: int = 0


class InstanceStorageInfo(AwsStruct):
    """Instance store of an instance type."""

    disks: list[Disk] = []
    nvme_support: str = ""


class InstanceTypeInfo(AwsStruct):
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
    """Convert items of a response; ProviderUnavailableError if they are invalid."""
    try:
        return [msgspec.convert(one, kind) for one in msgspec.convert(items or [], list[object])]
    except msgspec.ValidationError as problem:
        raise ProviderUnavailableError(f"AWS's answer cannot be read: {problem}") from problem
