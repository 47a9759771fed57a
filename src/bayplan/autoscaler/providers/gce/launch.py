"""What a group launches: its instance templates, its machine types, and their minimum size.

Instance templates cannot be changed, only replaced; they are cached for 20 minutes. A group has
several machine types if it has a flexibility policy, or templates that differ during a rollout. It
is then described by the minimum of each resource, so that the pods fit any of them. Custom machine
types have their size in their name.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from bayplan.autoscaler.providers.gce.api_types import (
    InstanceProperties,
    InstanceTemplate,
    MachineTypeInfo,
    ManagedGroup,
)
from bayplan.autoscaler.providers.gce.kube_env import EnvValues, read_metadata
from bayplan.autoscaler.providers.gce.refs import (
    InstanceTemplateRef,
    MigRef,
    last_part,
    template_ref,
)
from bayplan.autoscaler.providers.gce.sdk import GceSdk
from bayplan.base.clock import Clock
from bayplan.nodegroups import NodeGroupNotFoundError, UnimplementedError

FRESH = 1200.0
MOST_TYPES = 100
"""The maximum number of machine types of one group that are read."""
LOCAL_SSD_GB = 375
_GPU = "nvidia-"
_CUSTOM = re.compile(r"(?:([a-z0-9]+)-)?custom-([a-z0-9]{1,6})-(\d{1,9})(?:-.*)?")
_SHARED_CORES = ("micro", "small", "medium")


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """What is known of an instance template; its metadata, which has secrets, is not kept."""

    machine_type: str
    labels: dict[str, str]
    """Labels of its instances, not of their nodes."""
    env: EnvValues
    boot_disk_gb: int = 0
    local_ssds: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class MachineSize:
    """The minimum size of a group's instances."""

    types: tuple[str, ...]
    cpus: int
    memory: int
    """MiB."""
    gpus: int = 0
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class MigLaunch:
    """What a group launches."""

    template: LaunchTemplate
    size: MachineSize


class MigLaunches:
    """Finds what groups launch, cached."""

    def __init__(self, sdk: GceSdk, clock: Clock) -> None:
        self._sdk = sdk
        self._clock = clock
        self._templates: dict[InstanceTemplateRef, tuple[float, LaunchTemplate]] = {}
        self._types: dict[tuple[str, str, str], MachineTypeInfo] = {}
        self._locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()
        """Groups are read at the same time, and many have the same machine type."""

    async def find(self, ref: MigRef, group: ManagedGroup, zones: Sequence[str]) -> MigLaunch:
        """Return what a group launches; UnimplementedError if it has no machine type."""
        templates = await self.templates(ref, group)
        types = group.machine_types or [one.machine_type for one in templates]
        wanted = list(dict.fromkeys(filter(None, map(last_part, types))))[:MOST_TYPES]
        if not wanted:
            raise UnimplementedError(f"node group {ref.id}: no machine type")
        found = await asyncio.gather(*(self._type(ref, zones, one) for one in wanted))
        size = _least(found)
        gpus = templates[0].gpus or size.gpus
        return MigLaunch(templates[0], replace(size, gpus=gpus))

    async def templates(self, ref: MigRef, group: ManagedGroup) -> list[LaunchTemplate]:
        """Return a group's instance templates; UnimplementedError if it has none."""
        refs = list(filter(None, map(template_ref, group.templates)))
        if not refs:
            raise UnimplementedError(f"node group {ref.id}: no instance template")
        return list(await asyncio.gather(*map(self._template, refs)))

    async def _template(self, ref: InstanceTemplateRef) -> LaunchTemplate:
        async with self._locks.setdefault(ref, asyncio.Lock()):
            return await self._cached_template(ref)

    async def _cached_template(self, ref: InstanceTemplateRef) -> LaunchTemplate:
        now = self._clock.monotonic()
        since, known = self._templates.get(ref, (float("-inf"), None))
        if known is not None and now - since < FRESH:
            return known
        found = _launch_template((await self._read_template(ref)).properties)
        fresh = {one: kept for one, kept in self._templates.items() if now - kept[0] < FRESH}
        self._templates = {**fresh, ref: (now, found)}
        return found

    async def _read_template(self, ref: InstanceTemplateRef) -> InstanceTemplate:
        place = {"project": ref.project, "instance_template": ref.name}
        if ref.region:
            client, place = "RegionInstanceTemplatesClient", {**place, "region": ref.region}
            return await self._sdk.read(client, "get", InstanceTemplate, **place)
        return await self._sdk.read("InstanceTemplatesClient", "get", InstanceTemplate, **place)

    async def _type(self, ref: MigRef, zones: Sequence[str], name: str) -> MachineTypeInfo:
        """Return a machine type; a regional group may have a zone that does not offer it."""
        custom = custom_type(name)
        if custom is not None:
            return custom
        for zone in zones:
            try:
                return await self._in_zone(ref.project, zone, name)
            except NodeGroupNotFoundError:
                continue
        places = ", ".join(zones) or "no zone"
        raise UnimplementedError(f"node group {ref.id}: no machine type {name!r} in {places}")

    async def _in_zone(self, project: str, zone: str, name: str) -> MachineTypeInfo:
        key = (project, zone, name)
        place = {"project": project, "zone": zone, "machine_type": name}
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._types:
                self._types[key] = await self._sdk.read(
                    "MachineTypesClient", "get", MachineTypeInfo, **place
                )
        return self._types[key]


def custom_type(name: str) -> MachineTypeInfo | None:
    """Return the size in the name of a custom machine type; None if it is not custom."""
    found = _CUSTOM.fullmatch(name)
    if found is None:
        return None
    family, cpus, memory = found.groups()
    if family == "e2" and cpus in _SHARED_CORES:
        return MachineTypeInfo(name=name, guest_cpus=2, memory_mb=int(memory))
    if not cpus.isdecimal():
        return None
    return MachineTypeInfo(name=name, guest_cpus=int(cpus), memory_mb=int(memory))


def _launch_template(properties: InstanceProperties) -> LaunchTemplate:
    disks = properties.disks
    boot = next((one for one in disks if one.boot), None)
    return LaunchTemplate(
        last_part(properties.machine_type),
        properties.labels,
        read_metadata(properties.metadata.items),
        boot.initialize_params.disk_size_gb if boot is not None else 0,
        sum(last_part(one.initialize_params.disk_type) == "local-ssd" for one in disks),
        sum(
            one.accelerator_count
            for one in properties.guest_accelerators
            if last_part(one.accelerator_type).startswith(_GPU)
        ),
    )


def _least(types: Sequence[MachineTypeInfo]) -> MachineSize:
    return MachineSize(
        tuple(one.name for one in types),
        min(one.guest_cpus for one in types),
        min(one.memory_mb for one in types),
        min(_gpus(types)),
        next((one.architecture for one in types if one.architecture), ""),
    )


def _gpus(types: Iterable[MachineTypeInfo]) -> list[int]:
    return [
        sum(
            gpu.guest_accelerator_count
            for gpu in one.accelerators
            if gpu.guest_accelerator_type.startswith(_GPU)
        )
        for one in types
    ]
