"""The GCE provider: managed instance groups as node groups.

Reads are answered from the inventory, at most a minute old. A change reads the group first. The
size is only ever increased by a resize, to an absolute number, so that repeating it has no effect;
a resize to less would delete instances that Compute Engine chooses. Instances are deleted by name,
and only those that their group lists and is not deleting yet: each lowers the size once, however
often its deletion is requested, also after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from bayplan.autoscaler.providers.descriptions import override_options
from bayplan.autoscaler.providers.gce.inventory import Mig, MigInventory
from bayplan.autoscaler.providers.gce.launch import MigLaunch
from bayplan.autoscaler.providers.gce.members import count_active, is_leaving, refs_of
from bayplan.autoscaler.providers.gce.refs import InstanceRef, node_instance
from bayplan.autoscaler.providers.gce.sdk import GceSdk, GceSession, GceTimeouts, new_session
from bayplan.autoscaler.providers.gce.selection import MigSelection, read_selection
from bayplan.autoscaler.providers.gce.templates import template
from bayplan.autoscaler.providers.informers import InstalledDrivers
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.base.suggestions import no_such
from bayplan.client import Client
from bayplan.kube.pdlimits import PD_DRIVER
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    RefusedError,
    TemplateNodeInfo,
    UnimplementedError,
)

GPU_LABEL = "cloud.google.com/gke-accelerator"
CHUNK = 1000
"""Compute Engine's maximum number of instances in one deletion."""


class GceProvider:
    """A provider of managed instance groups."""

    def __init__(self, sdk: GceSdk, inventory: MigInventory, drivers: InstalledDrivers) -> None:
        self._sdk = sdk
        self._inventory = inventory
        self._drivers = drivers

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All groups."""
        return [one.group for one in self._inventory.groups.values()]

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The group of the node's instance."""
        instance = node_instance(node.provider_id)
        name = self._inventory.group_of.get(instance) if instance is not None else None
        return self._inventory.groups[name].group if name in self._inventory.groups else None

    async def target_size(self, group: str) -> int:
        """The target size of a group."""
        return self._answered(group).size

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group, with those that Compute Engine cannot create."""
        return self._answered(group).instances

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template by machine type and instance template."""
        found = self._group(group)
        if not isinstance(found.launch, MigLaunch):
            raise UnimplementedError(str(found.launch))
        has_driver = PD_DRIVER in await self._drivers.names()
        return template(found.ref, found.group.zones, found.launch, has_driver=has_driver)

    async def problems(self) -> Sequence[GroupProblem]:
        """Metadata that cannot be read, and groups that do not exist."""
        return self._inventory.problems

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The options in the instance template's metadata, over the defaults."""
        launch = self._group(group).launch
        found = launch.template.env.options if isinstance(launch, MigLaunch) else {}
        return override_options(found, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: prices are not read from Compute Engine."""
        raise UnimplementedError(f"no price of {node.name} from {start} to {end} is known")

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: prices are not read from Compute Engine."""
        raise UnimplementedError(f"no price of {pod.key} from {start} to {end} is known")

    async def gpu_label(self) -> str:
        """The label of GCE's GPU nodes."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types in the labels of groups' nodes."""
        launches = (one.launch for one in self._inventory.groups.values())
        labels = (one.template.env.labels for one in launches if isinstance(one, MigLaunch))
        return frozenset(filter(None, (one.get(GPU_LABEL, "") for one in labels)))

    async def increase(self, group: str, count: int) -> None:
        """Increase the target size."""
        _check_count(group, count)
        found = self._group(group)
        now, _ = await self._inventory.read(found.ref)
        most, size = found.group.max_size, now + count
        if size > most:
            raise RefusedError(f"node group {group}: {size} is above its maximum {most}")
        await self._resize(found, size)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Delete instances, which decreases the target size by as many.

        Those that are being deleted, or are no longer there, are left alone.
        """
        found = self._group(group)
        wanted = dict.fromkeys(self._instance_of(found, one) for one in nodes)
        size, members = await self._inventory.read(found.ref)
        current = refs_of(members)
        leaving = [one for one in wanted if one in current and not is_leaving(current[one])]
        left, least = size - len(leaving), found.group.min_size
        if leaving and left < least:
            raise RefusedError(f"node group {group}: {left} would be below its minimum {least}")
        self._inventory.invalidate()
        for start in range(0, len(leaving), CHUNK):
            urls = [one.url for one in leaving[start : start + CHUNK]]
            await self._sdk.delete_instances(found.ref, urls)
        self._inventory.resized(group, left)

    async def decrease_target(self, group: str, count: int) -> None:
        """Decrease the target size by instances that do not exist yet."""
        _check_count(group, count)
        found = self._group(group)
        now, members = await self._inventory.read(found.ref)
        size, current = now - count, count_active(members)
        if size < current:
            raise RefusedError(f"node group {group}: {current} instances already exist")
        await self._resize(found, size)

    async def refresh(self) -> None:
        """Read Compute Engine again, once a minute or after a change."""
        await self._inventory.refresh()

    async def cleanup(self) -> None:
        """Start no more calls."""
        self._sdk.close()

    def _group(self, group: str) -> Mig:
        if group not in self._inventory.groups:
            raise NodeGroupNotFoundError(no_such("node group", group, self._inventory.groups))
        return self._inventory.groups[group]

    def _answered(self, group: str) -> Mig:
        found = self._group(group)
        if found.error is not None:
            raise found.error
        return found

    def _instance_of(self, group: Mig, node: NodeRef) -> InstanceRef:
        """Return a node's instance; it may be one that was deleted."""
        found = node_instance(node.provider_id)
        if found is None:
            raise NodeGroupNotFoundError(f"there is no instance {node.provider_id or node.name!r}")
        owner = self._inventory.group_of.get(found, group.group.id)
        if owner != group.group.id:
            message = f"{node.provider_id} is not in node group {group.group.id}"
            raise InvalidRequestError(message)
        return found

    async def _resize(self, found: Mig, size: int) -> None:
        self._inventory.invalidate()
        await self._sdk.resize(found.ref, size)
        self._inventory.resized(found.group.id, size)


def _check_count(group: str, count: int) -> None:
    if count <= 0:
        raise InvalidRequestError(f"node group {group}: cannot be resized by {count}")


@asynccontextmanager
async def open_provider(
    options: ProviderOptions,
    client: Client,
    session: GceSession | None = None,
    limits: GceTimeouts | None = None,
) -> AsyncIterator[Provider]:
    """Open the provider for the groups that the options select; a session may be passed."""
    wanted = check_options(options)
    if session is None:
        # Credentials may come from a server on the machine, which is asked blockingly.
        session = await asyncio.to_thread(new_session)
    if wanted.needs_project and not session.project:
        raise ProviderOptionError("--cloud-provider gce: no project; set GOOGLE_CLOUD_PROJECT")
    sdk = GceSdk(session, client.clock, client.rng, limits)
    try:
        yield GceProvider(sdk, MigInventory(sdk, wanted, client.clock), InstalledDrivers(client))
    finally:
        sdk.close()


def check_options(options: ProviderOptions) -> MigSelection:
    """Return the groups that the options select."""
    if options.cloud_config is not None:
        raise ProviderOptionError(
            "--cloud-config: GCE is configured by application default credentials, such as"
            " GOOGLE_APPLICATION_CREDENTIALS, and GOOGLE_CLOUD_PROJECT"
        )
    return read_selection(options.nodes, options.node_group_auto_discovery)
