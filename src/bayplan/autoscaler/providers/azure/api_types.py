"""Azure's responses, as far as they are read; all fields are validated."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from bayplan.nodegroups import ProviderUnavailableError

T = TypeVar("T")
_Capacity = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class AzureStruct(msgspec.Struct, rename="camel", kw_only=True):
    """Base of Azure's structures: field names are in camel case."""


class ScaleSetSku(AzureStruct):
    """The VM size of a scale set, and its capacity."""

    name: str = ""
    tier: str = ""
    capacity: _Capacity = 0


class OsDisk(AzureStruct):
    """The OS disk of new instances."""

    disk_size: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = msgspec.field(
        default=0, name="diskSizeGB"
    )


class StorageProfile(AzureStruct):
    """The disks of new instances."""

    os_disk: OsDisk = msgspec.field(default_factory=OsDisk)


class OsProfile(AzureStruct):
    """The operating system of new instances."""

    windows_configuration: dict[str, object] | None = None


class VmProfile(AzureStruct):
    """The model of new instances."""

    storage_profile: StorageProfile = msgspec.field(default_factory=StorageProfile)
    os_profile: OsProfile = msgspec.field(default_factory=OsProfile)


class ScaleSetProperties(AzureStruct):
    """The properties of a scale set."""

    provisioning_state: str = ""
    orchestration_mode: str = ""
    virtual_machine_profile: VmProfile = msgspec.field(default_factory=VmProfile)


class ScaleSet(AzureStruct):
    """A virtual machine scale set."""

    name: str
    location: str = ""
    sku: ScaleSetSku = msgspec.field(default_factory=ScaleSetSku)
    tags: dict[str, str] = {}
    zones: list[str] = []
    etag: str = ""
    properties: ScaleSetProperties = msgspec.field(default_factory=ScaleSetProperties)


class ViewStatus(AzureStruct):
    """A status of an instance view, such as `PowerState/running`."""

    code: str = ""
    message: str = ""


class InstanceView(AzureStruct):
    """The state of an instance or of a scale set at run time."""

    statuses: list[ViewStatus] = []


class ScaleSetVmProperties(AzureStruct):
    """The properties of an instance."""

    provisioning_state: str = ""
    instance_view: InstanceView | None = None


class ScaleSetVm(AzureStruct):
    """An instance of a Uniform scale set."""

    id: str
    instance_id: str
    properties: ScaleSetVmProperties = msgspec.field(default_factory=ScaleSetVmProperties)


class SkuCapability(AzureStruct):
    """A property of a VM size, such as `vCPUs`."""

    name: str = ""
    value: str = ""


class ResourceSku(AzureStruct):
    """A VM size, or another kind of resource."""

    name: str = ""
    resource_type: str = ""
    capabilities: list[SkuCapability] = []


def checked(item: object, kind: type[T]) -> T:
    """Convert an item of a response; ProviderUnavailableError if it is invalid."""
    try:
        return msgspec.convert(_without_nulls(item), kind)
    except msgspec.ValidationError as problem:
        raise ProviderUnavailableError(f"Azure's answer cannot be read: {problem}") from problem


def _without_nulls(item: object) -> object:
    """Leave null fields out: Azure also writes defaults as null."""
    if isinstance(item, dict):
        return {key: _without_nulls(value) for key, value in item.items() if value is not None}
    return [_without_nulls(one) for one in item] if isinstance(item, list) else item
