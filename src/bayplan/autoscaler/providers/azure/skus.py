"""VM sizes: their CPUs, memory, GPUs and data disks, from Azure's list of resource SKUs.

The list of a location is large and changes rarely: it is cached for a day, and read again sooner
only for a size that it does not have. If it cannot be read, the earlier list is used.

Data disks are those of the built-in table, which Azure's own CSI driver uses too, then those of the
SKU, then Azure's default.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.autoscaler.providers.azure.api_types import ResourceSku, checked
from bayplan.autoscaler.providers.azure.sdk import AzureSdk
from bayplan.base.clock import Clock
from bayplan.kube.attachtables import data_disks
from bayplan.nodegroups import NodeGroupError, UnimplementedError

FRESH = 24 * 3600.0
"""Seconds for which a list is cached."""
AGAIN = 900.0
"""Seconds before a list is read again after a failure, or for an unknown size."""
_VMS = "virtualmachines"
_ARCHITECTURES = {"x64": "amd64", "arm64": "arm64"}
_MIB_IN_GIB = 1024


@dataclass(frozen=True, slots=True)
class VmSize:
    """A VM size."""

    name: str
    cpus: int
    memory: int
    """MiB."""
    gpus: int
    architecture: str
    disks: int
    """The maximum number of data disks."""


@dataclass(slots=True)
class LocationSizes:
    """The VM sizes of a location, by name in lower case."""

    sizes: Mapping[str, VmSize] = field(default_factory=dict)
    read_at: float = float("-inf")
    tried_at: float = float("-inf")
    error: NodeGroupError | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class VmSizes:
    """Finds VM sizes by location and name, cached."""

    def __init__(self, sdk: AzureSdk, clock: Clock) -> None:
        self._sdk = sdk
        self._clock = clock
        self._locations: dict[str, LocationSizes] = defaultdict(LocationSizes)

    async def find(self, location: str, name: str) -> VmSize:
        """Return a VM size; UnimplementedError if Azure does not list it."""
        if not location.isalnum():
            raise UnimplementedError(f"{location[:40]!r} is not a location of Azure")
        known = self._locations[location.lower()]
        async with known.lock:
            await self._refresh(location.lower(), known, name.lower())
        if name.lower() in known.sizes:
            return known.sizes[name.lower()]
        why = f": {known.error}" if known.error is not None else ""
        raise UnimplementedError(f"Azure has no VM size {name[:80]!r} in {location}{why}")

    async def _refresh(self, location: str, known: LocationSizes, name: str) -> None:
        now = self._clock.monotonic()
        is_fresh = now - known.read_at < FRESH and name in known.sizes
        if is_fresh or now - known.tried_at < AGAIN:
            return
        known.tried_at = now
        try:
            known.sizes = await self._read(location)
            known.read_at, known.error = now, None
        except NodeGroupError as error:
            known.error = error

    async def _read(self, location: str) -> dict[str, VmSize]:
        found = await self._sdk.skus(location, _is_vm)
        read = (_size(checked(one, ResourceSku)) for one in found)
        return {one.name.lower(): one for one in read if one is not None}


def _is_vm(item: object) -> bool:
    kind = item.get("resourceType") if isinstance(item, dict) else None
    return isinstance(kind, str) and kind.lower() == _VMS


def _size(sku: ResourceSku) -> VmSize | None:
    """Return the VM size of a SKU; None if its CPUs or memory are not known."""
    known = {one.name.lower(): one.value for one in sku.capabilities}
    # Sizes with constrained cores have fewer than they are named and billed for.
    cpus = _number(known, "vcpusavailable") or _number(known, "vcpus")
    memory = _number(known, "memorygb")
    if not (sku.name and cpus and memory):
        return None
    return VmSize(
        sku.name,
        int(cpus),
        int(memory * _MIB_IN_GIB),
        int(_number(known, "gpus")),
        _ARCHITECTURES.get(known.get("cpuarchitecturetype", "").lower(), "amd64"),
        _disks(sku.name, known),
    )


def _disks(name: str, known: Mapping[str, str]) -> int:
    table = data_disks()
    if name.lower() in table.rows:
        return table.rows[name.lower()]
    return (
        int(_number(known, "maxdatadiskcount")) if "maxdatadiskcount" in known else table.otherwise
    )


def _number(known: Mapping[str, str], name: str) -> float:
    """Return a number of a SKU; 0 if it has none that can be read."""
    try:
        number = float(known.get(name, "0"))
    except ValueError:
        return 0.0
    return number if 0 <= number < 10**6 else 0.0
