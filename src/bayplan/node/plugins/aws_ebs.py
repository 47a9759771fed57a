"""Attach limits of EBS volumes, by EC2 instance type.

There are three kinds of instances, by EC2's own data:

- xen, the older ones: 40 volumes with the root volume;
- shared: on Nitro instances volumes share 28 slots with network interfaces and NVMe instance
  stores (some types have more or fewer slots, and some also count their accelerators);
- dedicated: newer Nitro instances have slots for volumes only, by size.

The root volume takes one slot of every kind. The limit is at least one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from bayplan.kube.attachlimits import MIN_LIMIT, NITRO_SLOTS
from bayplan.kube.attachtables import read_table
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

Kind = Literal["xen", "shared", "dedicated"]


class _Row(NamedTuple):
    kind: Kind
    slots: int
    """The most volumes, without the first interface and other fixed attachments."""
    stores: int = 0
    """NVMe instance stores, which are already subtracted."""


class _Table(msgspec.Struct):
    rows: dict[str, _Row]


UNKNOWN = _Row("shared", NITRO_SLOTS - 1)
"""A Nitro instance without instance stores, as most new types."""


class AwsEbsLimits:
    """Attach limits of EBS volumes."""

    name = "aws-ebs"
    driver = "ebs.csi.aws.com"
    cloud = "aws"

    def limit_key(self, source: InTreeSources) -> str:
        """Return `aws-ebs` for EBS volumes."""
        return self.name if source.aws_elastic_block_store is not None else ""

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the limit of the instance type."""
        require_cloud(instance, self)
        return {
            self.name: configured_limit(instance, options, self.name) or _found(instance, options)
        }


@cache
def table() -> Mapping[str, _Row]:
    """Return the table of instance types."""
    return read_table("aws-ebs", _Table).rows


def _found(instance: NodeInstance, options: LimitPluginOptions) -> ComputedLimit:
    row = table().get(instance.instance_type)
    slots, text = _left(row or UNKNOWN, options)
    left, kept = without_reserved(slots, options, MIN_LIMIT)
    name = type_text(instance, is_known=row is not None)
    return ComputedLimit(left, f"aws-ebs {name}: {text}{kept}", is_guess=row is None)


def _left(row: _Row, options: LimitPluginOptions) -> tuple[int, str]:
    """Return the slots for pods' volumes, and the text of their rule."""
    root = 1 if options.reserve.root else 0
    text = f"{row.slots} {row.kind}"
    if row.stores:
        stores = "instance store" if row.stores == 1 else "instance stores"
        text = f"{NITRO_SLOTS} shared - 1 interface - {row.stores} {stores}"
    more = options.reserve.interfaces - 1 if row.kind == "shared" else 0
    text += f" - {more} more {'interface' if more == 1 else 'interfaces'}" if more else ""
    text += " - 1 root" if root else ""
    return row.slots - more - root, text
