"""Volumes of CSI drivers: what people say of them by instance type, else what the driver says.

Only drivers that have registered on the node are spoken of. A driver that says no limit, and of
which people say none, gets no key.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.volumes import InTreeSources
from bayplan.node.machine import Machine
from bayplan.node.plugins.base import Found, Terms


class Csi:
    """Volumes of CSI drivers."""

    name = "csi"
    driver = ""
    cloud = ""

    def limit_key(self, source: InTreeSources) -> str:
        """That of the volume's driver."""
        return f"csi-{source.csi.driver}" if source.csi is not None else ""

    def limits(self, machine: Machine, terms: Terms) -> Mapping[str, Found]:
        """Of every driver on the machine of which somebody says one; on any cloud."""
        found = {driver: _found(driver, machine, terms) for driver in machine.drivers}
        return {f"csi-{driver}": one for driver, one in found.items() if one is not None}


def _found(driver: str, machine: Machine, terms: Terms) -> Found | None:
    row = terms.own.driver_row(driver, machine.instance_type)
    if row is not None:
        return Found(row.limit, f"csi {driver} {row.types}: as configured")
    count = machine.drivers[driver]
    return None if count is None else Found(count, f"csi {driver}: as its CSINode says")
