"""Azure disks, by VM size: its data disks; the disk of the operating system is not among them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from bayplan.kube.volumes import InTreeSources
from bayplan.node.machine import Machine
from bayplan.node.plugins.base import (
    Found,
    Terms,
    named,
    read_table,
    require_cloud,
    reserved,
    written,
)


class _Table(msgspec.Struct):
    rows: dict[str, int]
    """By VM size in lower case: Azure does not tell cases apart."""
    otherwise: int


class AzureDisk:
    """Azure disks."""

    name = "azure-disk"
    driver = "disk.csi.azure.com"
    cloud = "azure"

    def limit_key(self, source: InTreeSources) -> str:
        """Its own, of Azure disks."""
        return self.name if source.azure_disk is not None else ""

    def limits(self, machine: Machine, terms: Terms) -> Mapping[str, Found]:
        """By VM size."""
        require_cloud(machine, self)
        return {self.name: written(machine, terms, self.name) or _found(machine, terms)}


@cache
def table() -> _Table:
    """All VM sizes that are known."""
    return read_table("azure-disk", _Table)


def _found(machine: Machine, terms: Terms) -> Found:
    known = table()
    disks = known.rows.get(machine.instance_type.lower())
    count = known.otherwise if disks is None else disks
    left, kept = reserved(count, terms)
    said = named(machine, is_known=disks is not None)
    return Found(left, f"azure-disk {said}: {count} data disks{kept}", is_guess=disks is None)
