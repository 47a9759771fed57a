"""The Azure provider: Uniform virtual machine scale sets as node groups.

Reads are answered from the inventory, at most a minute old. A scale-up reads the scale set first
and sets its absolute capacity on the condition that it has not changed, so that concurrent changes
never add up. The capacity is only raised; it decreases when instances are deleted by name. A
deletion reads the instances first: those that are being deleted, or are gone, are left alone.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from bayplan.autoscaler.providers.azure.api_types import ScaleSet
from bayplan.autoscaler.providers.azure.config import AzureConfig, read_azure_config
from bayplan.autoscaler.providers.azure.connection import (
    AzureConnection,
    AzureLimits,
    open_sdk,
)
from bayplan.autoscaler.providers.azure.errors import ScaleSetChangedError
from bayplan.autoscaler.providers.azure.inventory import ScaleSetInventory, ScaleSetState
from bayplan.autoscaler.providers.azure.members import VmRef, is_failed, vm_ref
from bayplan.autoscaler.providers.azure.sdk import AzureSdk
from bayplan.autoscaler.providers.azure.selection import ScaleSetSelection, read_selection
from bayplan.autoscaler.providers.azure.skus import VmSizes
from bayplan.autoscaler.providers.azure.templates import DISK_DRIVER, GPU_LABEL, template
from bayplan.autoscaler.providers.descriptions import override_options
from bayplan.autoscaler.providers.informers import InstalledDrivers
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.base.suggestions import no_such
from bayplan.client import Client
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    RefusedError,
    TemplateNodeInfo,
    UnimplementedError,
)

ATTEMPTS = 3
"""How often a change is tried if others change the scale set meanwhile."""


class AzureProvider:
    """A provider of virtual machine scale sets."""

    def __init__(
        self, sdk: AzureSdk, inventory: ScaleSetInventory, sizes: VmSizes, drivers: InstalledDrivers
    ) -> None:
        self._sdk = sdk
        self._inventory = inventory
        self._sizes = sizes
        self._drivers = drivers

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All scale sets."""
        return [one.group for one in self._inventory.groups.values()]

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The scale set of the node's instance."""
        ref = vm_ref(node.provider_id)
        name = self._inventory.name_of(ref) if ref is not None else ""
        return self._inventory.groups[name].group if name else None

    async def target_size(self, group: str) -> int:
        """The capacity of a scale set, without instances that will not come."""
        return self._group(group).target()

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a scale set, and placeholders for missing ones."""
        return self._inventory.instances(self._group(group))

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template by VM size and tags."""
        found = self._group(group)
        size = await self._sizes.find(found.answer.location, found.answer.sku.name)
        has_disks = DISK_DRIVER in await self._drivers.names()
        return template(found.answer, size, found.tags, has_disks=has_disks)

    async def problems(self) -> Sequence[GroupProblem]:
        """Tags that cannot be read, and scale sets that are no groups."""
        return self._inventory.problems

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The options in tags, over the defaults."""
        return override_options(self._group(group).tags.options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: prices are not read from Azure."""
        raise UnimplementedError(f"no price of {node.name} from {start} to {end} is known")

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: prices are not read from Azure."""
        raise UnimplementedError(f"no price of {pod.key} from {start} to {end} is known")

    async def gpu_label(self) -> str:
        """The label of Azure's GPU nodes."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types in scale sets' tags, and that of templates."""
        types = (one.tags.labels.get(GPU_LABEL, "") for one in self._inventory.groups.values())
        return frozenset(filter(None, types)) | {"nvidia"}

    async def increase(self, group: str, count: int) -> None:
        """Increase the capacity."""
        _check_count(group, count)
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._increase(group, count)
            except ScaleSetChangedError:
                continue
        return await self._increase(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Delete instances, which decreases the capacity; placeholders are only given up."""
        found = self._group(group)
        refs = {self._ref(found, one) for one in nodes}
        wanted = {one.instance for one in refs if not one.is_placeholder}
        placeholders = sum(one.is_placeholder for one in refs)
        for _ in range(ATTEMPTS - 1):
            try:
                await self._delete(group, wanted, placeholders)
                break
            except InvalidRequestError:
                # One that has gone since it was read: read again what is left.
                continue
        else:
            await self._delete(group, wanted, placeholders)
        if placeholders:
            self._inventory.give_up(group, placeholders)

    async def decrease_target(self, group: str, count: int) -> None:
        """Wait no longer for missing instances; the capacity stays as it is."""
        _check_count(group, count)
        self._group(group)
        now = await self._inventory.read(group)
        if count > now.missing():
            raise RefusedError(f"node group {group}: {len(now.active())} instances already exist")
        self._inventory.give_up(group, count)

    async def refresh(self) -> None:
        """Read Azure again, once a minute or after a change."""
        await self._inventory.refresh()

    async def cleanup(self) -> None:
        """Do nothing: calls end with their context."""

    def _group(self, group: str) -> ScaleSetState:
        if group not in self._inventory.groups:
            raise NodeGroupNotFoundError(no_such("node group", group, self._inventory.groups))
        return self._inventory.groups[group]

    def _ref(self, group: ScaleSetState, node: NodeRef) -> VmRef:
        ref = vm_ref(node.provider_id)
        name = self._inventory.name_of(ref) if ref is not None else ""
        if ref is None or not name:
            raise NodeGroupNotFoundError(f"there is no instance {node.provider_id or node.name!r}")
        if name != group.group.id:
            message = f"{node.provider_id} is not in node group {group.group.id}"
            raise InvalidRequestError(message)
        return ref

    async def _increase(self, group: str, count: int) -> None:
        known = self._group(group)
        now = await self._inventory.read_scale_set(group)
        size = max(now.sku.capacity, now.sku.capacity - known.given_up + count)
        if size > known.group.max_size:
            most = known.group.max_size
            raise RefusedError(f"node group {group}: {size} is above its maximum {most}")
        await self._resize(now, size)

    async def _resize(self, now: ScaleSet, size: int) -> None:
        sku: dict[str, object] = {"name": now.sku.name, "capacity": size}
        sku |= {"tier": now.sku.tier} if now.sku.tier else {}
        try:
            await self._sdk.resize(now.name, sku, now.etag)
        except NodeGroupError:
            self._inventory.invalidate(now.name)
            raise
        self._inventory.resized(now.name, size)

    async def _delete(self, group: str, wanted: set[str], placeholders: int) -> None:
        now = await self._inventory.read(group)
        doomed = [one for one in now.active() if one.instance_id in wanted]
        least = now.group.min_size
        left = now.target() - len(doomed) - placeholders
        # One that could not be created is no node: it may be deleted below the minimum.
        if left < least and not all(map(is_failed, doomed)):
            raise RefusedError(f"node group {group}: {left} would be below its minimum {least}")
        if not doomed:
            return
        instances = [one.instance_id for one in doomed]
        try:
            await self._sdk.delete_instances(group, instances)
        except NodeGroupError:
            self._inventory.invalidate(group)
            raise
        self._inventory.deleted(group, instances)


def _check_count(group: str, count: int) -> None:
    if count <= 0:
        raise InvalidRequestError(f"node group {group}: cannot be resized by {count}")


@asynccontextmanager
async def open_provider(
    options: ProviderOptions,
    client: Client,
    environment: Mapping[str, str] = os.environ,
    limits: AzureLimits | None = None,
    connection: AzureConnection | None = None,
) -> AsyncIterator[Provider]:
    """Open the provider for the selected scale sets; a connection to Azure may be passed."""
    selection, config = check_options(options, environment)
    used = limits or AzureLimits()
    async with open_sdk(config, client.clock, client.rng, used, connection) as sdk:
        inventory = ScaleSetInventory(sdk, selection, client.clock, config.scale_sets)
        sizes = VmSizes(sdk, client.clock)
        yield AzureProvider(sdk, inventory, sizes, InstalledDrivers(client))


def check_options(
    options: ProviderOptions, environment: Mapping[str, str] = os.environ
) -> tuple[ScaleSetSelection, AzureConfig]:
    """Return the scale sets that the options select, and the configuration."""
    selection = read_selection(options.nodes, options.node_group_auto_discovery)
    return selection, read_azure_config(options.cloud_config, environment)
