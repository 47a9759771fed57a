"""GCE disks, by machine type.

Machines that share a core take 15 beside their boot disk, most others 127. The newest families
have Hyperdisks alone, and as many as their vCPUs (or GPUs) allow. A label can say otherwise for
machines that do not share a core.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from bayplan.kube.volumes import InTreeSources
from bayplan.node.machine import Machine
from bayplan.node.plugins.base import (
    Found,
    Terms,
    read_table,
    require_cloud,
    reserved,
    written,
)

OVERRIDE = "node-restriction.kubernetes.io/gke-volume-attach-limit-override"
_MOST = 127
_SIZE = re.compile(r"^[a-z0-9]+-[a-z]+-(\d{1,5})g?(?:-|$)")

Steps = Sequence[tuple[int, int]]
"""Sizes up to which so many disks can be attached, the smallest first."""


class _Table(msgspec.Struct, rename="camel"):
    shared_core: dict[str, int]
    metal: dict[str, int]
    by_size: dict[str, list[tuple[int, int]]]
    families: dict[str, int]
    otherwise: int


class GcePd:
    """GCE disks."""

    name = "gce-pd"
    driver = "pd.csi.storage.gke.io"
    cloud = "gce"

    def limit_key(self, source: InTreeSources) -> str:
        """Its own, of GCE disks."""
        return self.name if source.gce_persistent_disk is not None else ""

    def limits(self, machine: Machine, terms: Terms) -> Mapping[str, Found]:
        """By machine type, or as the node's label says."""
        require_cloud(machine, self)
        return {self.name: written(machine, terms, self.name) or _found(machine, terms)}


@cache
def table() -> _Table:
    """All that is known of types and families."""
    return read_table("gce-pd", _Table)


def _found(machine: Machine, terms: Terms) -> Found:
    count, said, is_guess = _by_type(machine)
    left, kept = reserved(count, terms)
    return Found(left, f"gce-pd {said}{kept}", is_guess)


def _by_type(machine: Machine) -> tuple[int, str, bool]:
    known, name = table(), machine.instance_type
    if name in known.shared_core:
        return known.shared_core[name], f"{name}: shared core", False
    label = machine.labels.get(OVERRIDE, "")
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
