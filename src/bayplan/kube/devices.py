"""Devices that pods claim: what of claims and classes decides where pods can go."""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import KubeObject, Struct
from bayplan.kube.nodes import NodeSelector

GROUP = "resource.k8s.io"
EXTENDED_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Followed by a class's name: an extended resource that any pod can ask for a device of it by."""


class SubRequest(Struct):
    """One of several devices of which the first that can be had is taken."""

    name: str = ""
    device_class_name: str = ""


class ExactRequest(Struct):
    """A device of one class."""

    device_class_name: str = ""


class DeviceRequest(Struct):
    """What a claim asks for; the class stood here itself before v1beta2."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[SubRequest] = []
    device_class_name: str = ""


class DeviceClaim(Struct):
    """All that a claim asks for."""

    requests: list[DeviceRequest] = []


class ResourceClaimSpec(Struct):
    """What is asked for."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class AllocationResult(Struct):
    """What was given; where it can be used, if not everywhere."""

    node_selector: NodeSelector | None = None


class ConsumerReference(Struct):
    """Who may use a claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Struct):
    """What was given, and to whom."""

    allocation: AllocationResult | None = None
    reserved_for: list[ConsumerReference] = []


class ResourceClaim(KubeObject):
    """A claim to devices."""

    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class DeviceClassSpec(Struct):
    """What of a class matters to pods that do not name it."""

    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    """A kind of device."""

    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)
