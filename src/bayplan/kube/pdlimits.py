"""How many disks a GCE machine type attaches besides its boot disk.

Shared-core machine types attach 15, most others 127. The newest families have only Hyperdisks, with
limits by vCPUs (or GPUs). A node label can override the limit, except for shared-core types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from bayplan.kube.attachtables import read_table

PD_DRIVER = "pd.csi.storage.gke.io"
OVERRIDE = "node-restriction.kubernetes.io/gke-volume-attach-limit-override"
_MOST = 127
_SIZE = re.compile(r"^[a-z0-9]+-[a-z]+-(\d{1,5})g?(?:-|$)")

Steps = Sequence[tuple[int, int]]
"""Pairs of a size and the limit up to that size, the smallest first."""


class PdTable(msgspec.Struct, rename="camel"):
    """The limits of GCE's machine types and families."""

    shared_core: dict[str, int]
    metal: dict[str, int]
    by_size: dict[str, list[tuple[int, int]]]
    families: dict[str, int]
    otherwise: int


@dataclass(frozen=True, slots=True)
class PdLimit:
    """The limit of a machine type, and the rule behind it."""

    count: int
    rule: str
    is_guess: bool = False
    """Whether the type is not in the table."""


@cache
def pd_table() -> PdTable:
    """Return the built-in table of types and families."""
    return read_table("gce-pd", PdTable)


def pd_limit(machine_type: str, labels: Mapping[str, str]) -> PdLimit:
    """Return the limit of a machine type, on a node with these labels."""
    known, name = pd_table(), machine_type
    if name in known.shared_core:
        return PdLimit(known.shared_core[name], f"{name}: shared core")
    label = labels.get(OVERRIDE, "")
    if label.isascii() and label.isdecimal() and len(label) < 4 and 0 < int(label) <= _MOST:
        return PdLimit(int(label), f"{name}: by its label {OVERRIDE}")
    family = name.partition("-")[0]
    if name.endswith("-metal") and family in known.metal:
        return PdLimit(known.metal[family], f"{name}: {family} on bare metal")
    return _by_family(known, family, name)


def _by_family(known: PdTable, family: str, name: str) -> PdLimit:
    if family in known.families:
        return PdLimit(known.families[family], f"{name}: family {family}")
    size, steps = _SIZE.match(name), known.by_size.get(family, ())
    if not steps or size is None:
        rule = f"{name or 'no type'}, not in the table: {known.otherwise}"
        return PdLimit(known.otherwise, rule, is_guess=True)
    count, bound = _step(steps, int(size[1]))
    return PdLimit(count, f"{name}: Hyperdisk, {family} {bound}")


def _step(steps: Steps, size: int) -> tuple[int, str]:
    for most, count in steps:
        if size <= most:
            return count, f"up to {most}"
    most, count = steps[-1]
    return count, f"over {most}"
