"""Claims to devices, and the classes of devices, as objects say them."""

from __future__ import annotations

from bayplan.kube.devices import EXTENDED_PREFIX, DeviceClass, ResourceClaim


class DeviceObjects:
    """ResourceClaims and DeviceClasses."""

    def __init__(self) -> None:
        self.claims: dict[str, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}

    def serves(self, resource: str) -> bool:
        """Whether devices can be had under the name of an extended resource."""
        if not self.classes:
            return False
        if resource.removeprefix(EXTENDED_PREFIX) in self.classes:
            return resource.startswith(EXTENDED_PREFIX)
        return any(one.spec.extended_resource_name == resource for one in self.classes.values())
