"""Tables of attach limits by instance type: those that users configure, and the built-in ones.

Users configure limits by plugin or CSI driver, then by instance type:

    aws-ebs: {m5.large: 20, "r5.*": 22}
    azure-disk: {Standard_D2_v2: 4}
    csi:
      disk.csi.example.com: {small: 4, "*": 16}

A name that ends in `*` matches all types with that prefix. An exact name wins over a prefix, a
longer prefix over a shorter one. Case is ignored. The built-in tables are in `data`, each with its
source.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec

from bayplan.base.configfiles import FieldProblem, parse, read_text
from bayplan.kube.configvalues import Count, Section
from bayplan.kube.names import is_qualified_name
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES

T = TypeVar("T")
ByType = dict[str, int]
MAX_LIMIT = 100_000
PrefixName = Literal["attachable-volumes", "storage-attach-limits", "both"]


class AttachLimitRow(NamedTuple):
    """A configured limit, and the instance types that it is for."""

    types: str
    limit: int


class CustomLimits(Section):
    """Attach limits that users configure; they override the built-in tables."""

    aws_ebs: ByType = msgspec.field(default_factory=dict, name="aws-ebs")
    gce_pd: ByType = msgspec.field(default_factory=dict, name="gce-pd")
    azure_disk: ByType = msgspec.field(default_factory=dict, name="azure-disk")
    cinder: ByType = {}
    csi: dict[str, ByType] = {}

    def row(self, plugin: str, instance_type: str) -> AttachLimitRow | None:
        """Return the row of a plugin (such as `aws-ebs`) for an instance type."""
        return find_row(getattr(self, plugin.replace("-", "_")), instance_type)

    def driver_row(self, driver: str, instance_type: str) -> AttachLimitRow | None:
        """Return the row of a CSI driver for an instance type."""
        return find_row(self.csi.get(driver, {}), instance_type)


class LimitsSection(Section):
    """How limits are published: the keys, the reserved slots and the user's own limits."""

    prefix: PrefixName = "attachable-volumes"
    """Prefix of the keys."""
    reserve_root: bool = True
    """Reserve a slot for the root volume, where it takes one."""
    interfaces: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """Network interfaces, where they share slots with volumes."""
    reserve: Count = 0
    """Additional slots to reserve."""
    csi_nodes: bool = False
    """Also write limits into CSINodes for drivers that report none."""
    limits: CustomLimits = msgspec.field(default_factory=CustomLimits)
    """The user's own limits, which override the built-in tables."""


def find_row(table: Mapping[str, int], instance_type: str) -> AttachLimitRow | None:
    """Return the row of a table that applies to an instance type."""
    wanted, best = instance_type.lower(), None
    for types, limit in table.items():
        written = types.lower()
        if written == wanted:
            return AttachLimitRow(types, limit)
        is_prefix = written.endswith("*") and wanted.startswith(written[:-1])
        if is_prefix and (best is None or len(types) > len(best.types)):
            best = AttachLimitRow(types, limit)
    return best


def prefixes(name: PrefixName) -> tuple[str, ...]:
    """Return the key prefixes that a configured name means."""
    if name == "both":
        return ATTACH_LIMIT_PREFIXES
    return tuple(prefix for prefix in ATTACH_LIMIT_PREFIXES if prefix.startswith(name))


def check_custom_limits(limits: CustomLimits, path: str = "") -> CustomLimits:
    """Return the limits unchanged; raise FieldProblem if they are not valid."""
    prefix = f"{path}." if path else ""
    for plugin in ("aws-ebs", "gce-pd", "azure-disk", "cinder"):
        _check(getattr(limits, plugin.replace("-", "_")), f"{prefix}{plugin}")
    for driver, table in limits.csi.items():
        if not is_qualified_name(driver):
            raise FieldProblem(f"{prefix}csi.{driver}", "not the name of a CSI driver")
        _check(table, f"{prefix}csi.{driver}")
    return limits


def _check(table: ByType, path: str) -> None:
    known: dict[str, str] = {}
    for types, limit in table.items():
        place = f"{path}.{types}"
        if not 0 <= limit <= MAX_LIMIT:
            raise FieldProblem(place, f"{limit} is not between 0 and {MAX_LIMIT}")
        if "*" in types[:-1]:
            raise FieldProblem(place, "a * is allowed only at the end of a name")
        same = known.setdefault(types.lower(), types)
        if same != types:
            raise FieldProblem(place, f"duplicate of {same}: case is ignored")


def read_custom_limits(path: Path) -> CustomLimits:
    """Read the limits from a file; raise ConfigFileError if it cannot be used."""
    document = parse(read_text(path), str(path), CustomLimits)
    try:
        return check_custom_limits(document.value)
    except FieldProblem as problem:
        raise document.error(problem) from None


class DataDiskTable(msgspec.Struct):
    """The data disks of Azure's VM sizes."""

    rows: dict[str, int]
    """By VM size in lower case: Azure's names are case-insensitive."""
    otherwise: int
    """Azure's documented default for other sizes."""


@cache
def data_disks() -> DataDiskTable:
    """Return the built-in table of Azure's VM sizes."""
    return read_table("azure-disk", DataDiskTable)


def read_table(name: str, shape: type[T]) -> T:
    """Read a built-in table of limits."""
    text = resources.files("bayplan.kube").joinpath("data", f"{name}.json").read_bytes()
    return msgspec.json.decode(text, type=shape)
