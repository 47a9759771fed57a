"""Attach limits of CSI drivers: the configured one of the instance type, else the CSINode's.

Only for drivers that have registered on the node. A driver without a limit in its CSINode and in
the configuration gets no key.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance
from bayplan.node.plugins.base import ComputedLimit, LimitPluginOptions


class CsiLimits:
    """Attach limits of CSI drivers."""

    name = "csi"
    driver = ""
    cloud = ""

    def limit_key(self, source: InTreeSources) -> str:
        """Return the end of the key of the volume's driver."""
        return f"csi-{source.csi.driver}" if source.csi is not None else ""

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the limit of every registered driver that has one; on any cloud."""
        found = {driver: _found(driver, instance, options) for driver in instance.drivers}
        return {f"csi-{driver}": one for driver, one in found.items() if one is not None}


def _found(
    driver: str, instance: NodeInstance, options: LimitPluginOptions
) -> ComputedLimit | None:
    row = options.own.driver_row(driver, instance.instance_type)
    if row is not None:
        return ComputedLimit(row.limit, f"csi {driver} {row.types}: as configured")
    count = instance.drivers[driver]
    return None if count is None else ComputedLimit(count, f"csi {driver}: from its CSINode")
