"""Resource claims and device classes, as far as scheduling reads them."""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import KubeObject, Struct
from bayplan.kube.nodes import NodeSelector

GROUP = "resource.k8s.io"
EXTENDED_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource by which a pod can request a device of a class."""


class SubRequest(Struct):
    """One of several alternatives, of which the first available is allocated."""

    name: str = ""
    device_class_name: str = ""


class ExactRequest(Struct):
    """A request for a device of one class."""

    device_class_name: str = ""


class DeviceRequest(Struct):
    """One request of a claim; before v1beta2 the class was a field of it."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[SubRequest] = []
    device_class_name: str = ""


class DeviceClaim(Struct):
    """The device requests of a claim."""

    requests: list[DeviceRequest] = []


class ResourceClaimSpec(Struct):
    """The spec of a resource claim."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class AllocationResult(Struct):
    """The allocation of a claim, and the nodes where it can be used, if not all."""

    node_selector: NodeSelector | None = None


class ConsumerReference(Struct):
    """A consumer of a claim, such as a pod."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Struct):
    """The allocation of a claim, and its consumers."""

    allocation: AllocationResult | None = None
    reserved_for: list[ConsumerReference] = []


class ResourceClaim(KubeObject):
    """A claim for devices."""

    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class DeviceClassSpec(Struct):
    """The extended resource of a device class."""

    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    """A class of devices."""

    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)
