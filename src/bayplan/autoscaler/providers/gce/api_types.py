"""Compute Engine's responses, as far as they are read; all fields are validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from bayplan.nodegroups import ProviderUnavailableError

T = TypeVar("T")


class GceStruct(msgspec.Struct, kw_only=True, frozen=True):
    """Base of Compute Engine's structures."""


class GceError(GceStruct, frozen=True):
    """An error of an operation, or of an instance."""

    code: str = ""
    message: str = ""


class GceErrors(GceStruct, frozen=True):
    """A list of errors."""

    errors: list[GceError] = []


class ComputeOperation(GceStruct, frozen=True):
    """An operation, which ends later than the request that started it."""

    name: str
    status: str = ""
    http_error_status_code: int = 0
    error: GceErrors = GceErrors()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.status == "DONE"

    @property
    def errors(self) -> list[GceError]:
        """The errors that it ended with."""
        if self.error.errors or self.http_error_status_code < 400:
            return self.error.errors
        return [GceError(message="the operation failed")]


class GroupVersion(GceStruct, frozen=True):
    """An instance template of a group; during a canary rollout it has several."""

    instance_template: str = ""


class ZoneConfiguration(GceStruct, frozen=True):
    """A zone of a regional group."""

    zone: str = ""


class DistributionPolicy(GceStruct, frozen=True):
    """The zones of a regional group."""

    zones: list[ZoneConfiguration] = []


class InstanceSelection(GceStruct, frozen=True):
    """Machine types among which a group chooses."""

    machine_types: list[str] = []


class FlexibilityPolicy(GceStruct, frozen=True):
    """Machine types that override that of the instance template."""

    instance_selections: dict[str, InstanceSelection] = {}


class LabelledProperties(GceStruct, frozen=True):
    """Labels of a group's instances."""

    labels: dict[str, str] = {}


class AllInstancesConfig(GceStruct, frozen=True):
    """Labels that override those of the instance template."""

    properties: LabelledProperties = LabelledProperties()


class ManagedGroupStatus(GceStruct, frozen=True):
    """The status of a group."""

    autoscaler: str = ""
    """The URL of Compute Engine's own autoscaler, if it scales the group."""


class ManagedGroup(GceStruct, frozen=True):
    """A managed instance group."""

    name: str
    target_size: int
    zone: str = ""
    region: str = ""
    instance_template: str = ""
    versions: list[GroupVersion] = []
    distribution_policy: DistributionPolicy = DistributionPolicy()
    instance_flexibility_policy: FlexibilityPolicy = FlexibilityPolicy()
    all_instances_config: AllInstancesConfig = AllInstancesConfig()
    status: ManagedGroupStatus = ManagedGroupStatus()

    @property
    def templates(self) -> list[str]:
        """The URLs of its instance templates."""
        found = [self.instance_template, *(one.instance_template for one in self.versions)]
        return list(dict.fromkeys(filter(None, found)))

    @property
    def machine_types(self) -> list[str]:
        """The machine types of its flexibility policy, which may be none."""
        selections = self.instance_flexibility_policy.instance_selections
        return [one for name in sorted(selections) for one in selections[name].machine_types]


class ScopeWarning(GceStruct, frozen=True):
    """Why a zone or region has no groups in a list."""

    code: str = ""


class ScopedGroups(GceStruct, frozen=True):
    """The groups of one zone or region; each is validated on its own."""

    instance_group_managers: list[dict[str, object]] = []
    warning: ScopeWarning = ScopeWarning()


class AggregatedPage(GceStruct, frozen=True):
    """A page of all groups of a project, by zone and region."""

    items: dict[str, ScopedGroups] = {}


class LastAttempt(GceStruct, frozen=True):
    """The errors of the last attempt to create an instance."""

    errors: GceErrors = GceErrors()


class ManagedInstance(GceStruct, frozen=True):
    """An instance of a group."""

    instance: str
    current_action: str = ""
    instance_status: str = ""
    last_attempt: LastAttempt = LastAttempt()


class MembersPage(GceStruct, frozen=True):
    """A page of a group's instances."""

    managed_instances: list[ManagedInstance] = []


class MetadataItem(GceStruct, frozen=True):
    """A metadata value of an instance template."""

    key: str = ""
    value: str = ""


class TemplateMetadata(GceStruct, frozen=True):
    """The metadata of an instance template."""

    items: list[MetadataItem] = []


class DiskParameters(GceStruct, frozen=True):
    """How a disk is created."""

    disk_size_gb: int = 0
    disk_type: str = ""


class TemplateDisk(GceStruct, frozen=True):
    """A disk of an instance template."""

    boot: bool = False
    type_: str = msgspec.field(default="", name="type_")
    initialize_params: DiskParameters = DiskParameters()


class GuestAccelerator(GceStruct, frozen=True):
    """Accelerators of an instance template."""

    accelerator_type: str = ""
    accelerator_count: int = 0


class InstanceProperties(GceStruct, frozen=True):
    """The properties of an instance template."""

    machine_type: str = ""
    labels: dict[str, str] = {}
    metadata: TemplateMetadata = TemplateMetadata()
    disks: list[TemplateDisk] = []
    guest_accelerators: list[GuestAccelerator] = []


class InstanceTemplate(GceStruct, frozen=True):
    """An instance template."""

    name: str
    properties: InstanceProperties = InstanceProperties()


class TypeAccelerator(GceStruct, frozen=True):
    """Accelerators of a machine type."""

    guest_accelerator_type: str = ""
    guest_accelerator_count: int = 0


class MachineTypeInfo(GceStruct, frozen=True):
    """A machine type."""

    name: str
    guest_cpus: int
    memory_mb: int
    architecture: str = ""
    accelerators: list[TypeAccelerator] = []


def converted(item: Mapping[str, object], kind: type[T]) -> T:
    """Convert an object of a response; ProviderUnavailableError if it is invalid."""
    try:
        # 64-bit numbers are texts in JSON.
        return msgspec.convert(item, kind, strict=False)
    except msgspec.ValidationError as problem:
        message = f"Compute Engine's answer cannot be read: {problem}"
        raise ProviderUnavailableError(message) from None
