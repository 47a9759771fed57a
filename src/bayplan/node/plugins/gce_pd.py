"""Attach limits of GCE disks, by machine type.

Shared-core machine types attach 15 disks besides the boot disk, most others 127. The newest
families have only Hyperdisks, with limits by vCPUs (or GPUs). A label can override the limit,
except for shared-core types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from bayplan.kube.attachtables import read_table
from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance
from bayplan.node.plugins.base import (
    ComputedLimit,
    LimitPluginOptions,
    configured_limit,
    require_cloud,
    without_reserved,
)

OVERRIDE = "node-restriction.kubernetes.io/gke-volume-attach-limit-override"
_MOST = 127
_SIZE = re.compile(r"^[a-z0-9]+-[a-z]+-(\d{1,5})g?(?:-|$)")

Steps = Sequence[tuple[int, int]]
"""Pairs of a size and the limit up to that size, the smallest first."""


class _Table(msgspec.Struct, rename="camel"):
    shared_core: dict[str, int]
    metal: dict[str, int]
    by_size: dict[str, list[tuple[int, int]]]
    families: dict[str, int]
    otherwise: int


class GcePdLimits:
    """Attach limits of GCE disks."""

    name = "gce-pd"
    driver = "pd.csi.storage.gke.io"
    cloud = "gce"

    def limit_key(self, source: InTreeSources) -> str:
        """Return `gce-pd` for GCE disks."""
        return self.name if source.gce_persistent_disk is not None else ""

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the limit of the machine type, or that of the node's label."""
        require_cloud(instance, self)
        return {
            self.name: configured_limit(instance, options, self.name) or _found(instance, options)
        }


@cache
def table() -> _Table:
    """Return the table of types and families."""
    return read_table("gce-pd", _Table)


def _found(instance: NodeInstance, options: LimitPluginOptions) -> ComputedLimit:
    count, text, is_guess = _by_type(instance)
    left, kept = without_reserved(count, options)
    return ComputedLimit(left, f"gce-pd {text}{kept}", is_guess)


def _by_type(instance: NodeInstance) -> tuple[int, str, bool]:
    known, name = table(), instance.instance_type
    if name in known.shared_core:
        return known.shared_core[name], f"{name}: shared core", False
    label = instance.labels.get(OVERRIDE, "")
    if label.isascii() and label.isdecimal() and len(label) < 4 and 0 < int(label) <= _MOST:
        return int(label), f"{name}: by its label {OVERRIDE}", False
    family = name.partition("-")[0]
    if name.endswith("-metal") and family in known.metal:
        return known.metal[family], f"{name}: {family} on bare metal", False
    return _by_family(known, family, name)


def _by_family(known: _Table, family: str, name: str) -> tuple[int, str, bool]:
    if family in known.families:
        return known.families[family], f"{name}: family {family}", False
    size, steps = _SIZE.match(name), known.by_size.get(family, ())
    if not steps or size is None:
        return known.otherwise, f"{name or 'no type'}, not in the table: {known.otherwise}", True
    count, bound = _step(steps, int(size[1]))
    return count, f"{name}: Hyperdisk, {family} {bound}", False


def _step(steps: Steps, size: int) -> tuple[int, str]:
    for most, count in steps:
        if size <= most:
            return count, f"up to {most}"
    most, count = steps[-1]
    return count, f"over {most}"
