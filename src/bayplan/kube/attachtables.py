"""Attach limits as people write them: by plugin or CSI driver, then by instance type.

    aws-ebs: {m5.large: 20, "r5.*": 22}
    azure-disk: {Standard_D2_v2: 4}
    csi:
      disk.csi.example.com: {small: 4, "*": 16}

A name that ends in `*` stands for all types that begin so; the longest that fits counts, and an
exact name before any. Upper and lower case are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from bayplan.base.configfiles import FieldProblem, parse, read_text
from bayplan.kube.configvalues import Count, Section
from bayplan.kube.names import is_qualified_name
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES

ByType = dict[str, int]
MOST = 100_000
PrefixName = Literal["attachable-volumes", "storage-attach-limits", "both"]


class Row(NamedTuple):
    """A limit that somebody has written, and for which types."""

    types: str
    limit: int


class OwnLimits(Section):
    """What people say of their machines; it counts before what is known of them."""

    aws_ebs: ByType = msgspec.field(default_factory=dict, name="aws-ebs")
    gce_pd: ByType = msgspec.field(default_factory=dict, name="gce-pd")
    azure_disk: ByType = msgspec.field(default_factory=dict, name="azure-disk")
    cinder: ByType = {}
    csi: dict[str, ByType] = {}

    def row(self, plugin: str, instance_type: str) -> Row | None:
        """What is said of a plugin (as `aws-ebs`) on machines of that type."""
        return row_for(getattr(self, plugin.replace("-", "_")), instance_type)

    def driver_row(self, driver: str, instance_type: str) -> Row | None:
        """What is said of a CSI driver on machines of that type."""
        return row_for(self.csi.get(driver, {}), instance_type)


class LimitsSection(Section):
    """How limits are published: which keys, what is kept back, and what people say themselves."""

    prefix: PrefixName = "attachable-volumes"
    """How keys begin."""
    reserve_root: bool = True
    """Keep a place for the machine's own volume, where it takes one."""
    interfaces: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """Network interfaces, where they share places with volumes."""
    reserve: Count = 0
    """Keep so many more places free."""
    csi_nodes: bool = False
    """Write limits also into CSINodes of drivers that say none."""
    limits: OwnLimits = msgspec.field(default_factory=OwnLimits)
    """Your own, before the tables."""


def row_for(table: Mapping[str, int], instance_type: str) -> Row | None:
    """The row of a table that counts for a type."""
    wanted, best = instance_type.lower(), None
    for types, limit in table.items():
        written = types.lower()
        if written == wanted:
            return Row(types, limit)
        fits = written.endswith("*") and wanted.startswith(written[:-1])
        if fits and (best is None or len(types) > len(best.types)):
            best = Row(types, limit)
    return best


def prefixes(name: PrefixName) -> tuple[str, ...]:
    """The prefixes that a name stands for."""
    if name == "both":
        return ATTACH_LIMIT_PREFIXES
    return tuple(one for one in ATTACH_LIMIT_PREFIXES if one.startswith(name))


def check_own_limits(own: OwnLimits, path: str = "") -> OwnLimits:
    """The same, if it makes sense; FieldProblem if not."""
    prefix = f"{path}." if path else ""
    for plugin in ("aws-ebs", "gce-pd", "azure-disk", "cinder"):
        _check(getattr(own, plugin.replace("-", "_")), f"{prefix}{plugin}")
    for driver, table in own.csi.items():
        if not is_qualified_name(driver):
            raise FieldProblem(f"{prefix}csi.{driver}", "this names no CSI driver")
        _check(table, f"{prefix}csi.{driver}")
    return own


def _check(table: ByType, path: str) -> None:
    known: dict[str, str] = {}
    for types, limit in table.items():
        place = f"{path}.{types}"
        if not 0 <= limit <= MOST:
            raise FieldProblem(place, f"{limit} is not between 0 and {MOST}")
        if "*" in types[:-1]:
            raise FieldProblem(place, "a * stands only at the end of a name")
        same = known.setdefault(types.lower(), types)
        if same != types:
            raise FieldProblem(place, f"the same as {same}: upper and lower case are one")


def read_own_limits(path: Path) -> OwnLimits:
    """The limits that a file says; ConfigFileError if it cannot be used."""
    document = parse(read_text(path), str(path), OwnLimits)
    try:
        return check_own_limits(document.value)
    except FieldProblem as problem:
        raise document.error(problem) from None
