"""EBS volumes, by EC2 instance type.

Three kinds of machines, by what EC2 tells of them:

- xen, the older ones: 40 volumes with the machine's own;
- shared: on Nitro machines volumes share 28 places with network interfaces and NVMe instance
  stores (others have more or fewer places, and some also count their accelerators);
- dedicated: newer Nitro machines have places for volumes alone, by size.

Of every kind one place is the machine's own volume's. No machine is taken to have less than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from bayplan.kube.attachlimits import FEWEST, NITRO_SLOTS
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

Kind = Literal["xen", "shared", "dedicated"]


class _Row(NamedTuple):
    kind: Kind
    places: int
    """Volumes at most, beside the first interface and what else the machine always has."""
    stores: int = 0
    """NVMe instance stores, which are taken off already."""


class _Table(msgspec.Struct):
    rows: dict[str, _Row]


UNKNOWN = _Row("shared", NITRO_SLOTS - 1)
"""A Nitro machine without instance stores: so is most of what is new."""


class AwsEbs:
    """EBS volumes."""

    name = "aws-ebs"
    driver = "ebs.csi.aws.com"
    cloud = "aws"

    def limit_key(self, source: InTreeSources) -> str:
        """Its own, of EBS volumes."""
        return self.name if source.aws_elastic_block_store is not None else ""

    def limits(self, machine: Machine, terms: Terms) -> Mapping[str, Found]:
        """By instance type."""
        require_cloud(machine, self)
        return {self.name: written(machine, terms, self.name) or _found(machine, terms)}


@cache
def table() -> Mapping[str, _Row]:
    """All types that are known."""
    return read_table("aws-ebs", _Table).rows


def _found(machine: Machine, terms: Terms) -> Found:
    row = table().get(machine.instance_type)
    places, said = _left(row or UNKNOWN, terms)
    left, kept = reserved(places, terms, FEWEST)
    name = named(machine, is_known=row is not None)
    return Found(left, f"aws-ebs {name}: {said}{kept}", is_guess=row is None)


def _left(row: _Row, terms: Terms) -> tuple[int, str]:
    """Places for volumes of pods, and how they are counted."""
    root = 1 if terms.reserve.root else 0
    said = f"{row.places} {row.kind}"
    if row.stores:
        stores = "instance store" if row.stores == 1 else "instance stores"
        said = f"{NITRO_SLOTS} shared - 1 interface - {row.stores} {stores}"
    more = terms.reserve.interfaces - 1 if row.kind == "shared" else 0
    said += f" - {more} more {'interface' if more == 1 else 'interfaces'}" if more else ""
    said += " - 1 root" if root else ""
    return row.places - more - root, said
