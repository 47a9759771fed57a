"""Attach limits of Azure disks, by VM size: its data disks, without the OS disk."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.attachtables import data_disks
from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance
from bayplan.node.plugins.base import (
    ComputedLimit,
    LimitPluginOptions,
    configured_limit,
    require_cloud,
    type_text,
    without_reserved,
)


class AzureDiskLimits:
    """Attach limits of Azure disks."""

    name = "azure-disk"
    driver = "disk.csi.azure.com"
    cloud = "azure"

    def limit_key(self, source: InTreeSources) -> str:
        """Return `azure-disk` for Azure disks."""
        return self.name if source.azure_disk is not None else ""

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the limit of the VM size."""
        require_cloud(instance, self)
        return {
            self.name: configured_limit(instance, options, self.name) or _found(instance, options)
        }


def _found(instance: NodeInstance, options: LimitPluginOptions) -> ComputedLimit:
    known = data_disks()
    disks = known.rows.get(instance.instance_type.lower())
    count = known.otherwise if disks is None else disks
    left, kept = without_reserved(count, options)
    name = type_text(instance, is_known=disks is not None)
    return ComputedLimit(
        left, f"azure-disk {name}: {count} data disks{kept}", is_guess=disks is None
    )
