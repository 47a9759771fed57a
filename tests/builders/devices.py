"""Builders of claims to devices."""

from __future__ import annotations

from typing import Self

from bayplan.kube.devices import (
    AllocationResult,
    ConsumerReference,
    DeviceClass,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
    SubRequest,
)
from bayplan.kube.nodes import NodeSelector, NodeSelectorTerm
from tests.builders.base import DEFAULT, Builder


class ResourceClaimBuilder(Builder[ResourceClaim]):
    """A claim, of one device of class `gpu`."""

    def __init__(self, name: str, namespace: str = DEFAULT) -> None:
        super().__init__(ResourceClaim(), name, namespace)
        self._built.spec.devices.requests = [
            DeviceRequest(name="one", exactly=ExactRequest(device_class_name="gpu"))
        ]

    def first_of(self, *classes: str) -> Self:
        """Ask for the first of these classes that can be had."""
        several = [SubRequest(f"try-{i}", name) for i, name in enumerate(classes)]
        self._built.spec.devices.requests = [DeviceRequest(name="any", first_available=several)]
        return self

    def allocated(self, *terms: NodeSelectorTerm) -> Self:
        """Devices are given, to be used where these terms say; everywhere if there are none."""
        selector = NodeSelector(node_selector_terms=list(terms)) if terms else None
        self._built.status.allocation = AllocationResult(node_selector=selector)
        return self

    def reserved_for(self, *uids: str) -> Self:
        """Pods may use it."""
        self._built.status.reserved_for = [ConsumerReference("pods", uid, uid) for uid in uids]
        return self


def make_resource_claim(name: str, namespace: str = DEFAULT) -> ResourceClaimBuilder:
    """A claim to a device."""
    return ResourceClaimBuilder(name, namespace)


def make_device_class(name: str = "gpu", extended: str | None = None) -> Builder[DeviceClass]:
    """A class of devices."""
    built = DeviceClass()
    built.spec.extended_resource_name = extended
    return Builder(built, name)
