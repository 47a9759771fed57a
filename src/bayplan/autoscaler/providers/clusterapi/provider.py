"""The Cluster API provider: sizes through the scale subresource, machines as instances.

The objects are in the management cluster, which may differ from the cluster that is scaled. They
are watched, so that reads cost no requests; a change of size reads from the server first. A size
that we have just written is used until the watch has a newer version.

A deletion marks machines and then decreases the replicas; `objects.plan_deletion` finds what of
that is left to do, also after a crash between both.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from bayplan.autoscaler.providers.clusterapi.discovery import (
    DiscoverySpec,
    common_namespace,
    read_spec,
)
from bayplan.autoscaler.providers.clusterapi.index import MachineFinder, MachineIndex
from bayplan.autoscaler.providers.clusterapi.infrastructure import (
    InfrastructureTemplates,
    resource,
    version_of,
)
from bayplan.autoscaler.providers.clusterapi.objects import (
    GPU_LABEL,
    GROUP,
    ApiNames,
    DeletionPlan,
    Machine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    Scalable,
    has_failed,
    instance_of,
    is_deleting,
    is_marked,
    is_node,
    machine_key,
    machines_to_go,
    plan_deletion,
)
from bayplan.autoscaler.providers.clusterapi.scale import (
    DeletionMarks,
    Scaler,
    WrittenSize,
    check_bounds,
)
from bayplan.autoscaler.providers.clusterapi.templates import ScalableGroup, gpu_types, template
from bayplan.autoscaler.providers.descriptions import override_options
from bayplan.autoscaler.providers.informers import SyncedInformers
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client, Informers, Resource, Selection
from bayplan.client.config.access import Access
from bayplan.client.config.loader import from_service_account, load_access
from bayplan.client.errors import ConfigError
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceState,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    RefusedError,
    TemplateNodeInfo,
    UnimplementedError,
)


@dataclass(frozen=True, slots=True)
class ClusterApiClients:
    """Clients of the management and workload clusters, and the resources of Cluster API."""

    management: Client
    workload: Client
    resources: Mapping[str, Resource[Scalable]]
    """By kind, the resources that can be groups."""
    machines: Resource[Machine]
    names: ApiNames
    architecture: str
    """The default architecture of nodes."""

    @property
    def is_one(self) -> bool:
        """Whether both are the same cluster."""
        return self.management is self.workload


class ClusterApiProvider:
    """A provider of the groups of a management cluster."""

    def __init__(
        self, cluster: ClusterApiClients, index: MachineIndex, informers: SyncedInformers
    ) -> None:
        self._cluster = cluster
        self._index = index
        self._informers = informers
        self._find = MachineFinder(index, cluster.names, cluster.workload)
        self._marks = DeletionMarks(cluster.management, cluster.machines, cluster.names)
        self._infrastructures = InfrastructureTemplates(cluster.management)
        self._written: dict[str, WrittenSize] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By group: a change must not see the marks of another one that is in progress."""
        self._instances: dict[str, tuple[Hashable, tuple[Instance, ...]]] = {}

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All groups, by name."""
        return sorted(map(self._bounded, self._index.groups()), key=lambda one: one.id)

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The group of a node's machine, or the pool that lists it."""
        found = self._find.group_of(node)
        return None if found is None else self._bounded(found)

    async def target_size(self, group: str) -> int:
        """The replicas of a group."""
        found = self._find.group(group)
        written = self._written.get(group)
        if written is not None and _is_older(found.resource, written):
            return written.replicas
        self._written.pop(group, None)
        return found.resource.spec.replicas or 0

    async def instances(self, group: str) -> Sequence[Instance]:
        """The machines of a group; of a pool, its list of provider IDs."""
        found = self._find.group(group)
        size = await self.target_size(group)
        version = self._index.version(found), size
        kept = self._instances.get(group)
        if kept is not None and kept[0] == version:
            return kept[1]
        instances = await self._read_instances(found, size)
        if not any(map(_is_nameless, instances)):
            self._instances[group] = version, instances
        return instances

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template from annotations, spec and infrastructure."""
        found = self._find.group(group)
        ref = found.resource.spec.template.spec.infrastructure_ref
        infrastructure = await self._infrastructures.find(ref, found.resource.namespace)
        return template(found, infrastructure, self._cluster.architecture)

    async def problems(self) -> Sequence[GroupProblem]:
        """Settings that cannot be read; objects of another cluster cannot have events."""
        found = list(self._index.problems())
        return found if self._cluster.is_one else [replace(one, about=None) for one in found]

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The options in annotations, over the defaults."""
        return override_options(self._find.group(group).options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: Cluster API has no prices."""
        raise UnimplementedError(f"Cluster API has no price of {node.name} from {start} to {end}")

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: Cluster API has no prices."""
        raise UnimplementedError(f"Cluster API has no price of {pod.key} from {start} to {end}")

    async def gpu_label(self) -> str:
        """The label of Cluster API's GPU nodes."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types in groups' labels."""
        return gpu_types(list(self._index.groups()))

    async def increase(self, group: str, count: int) -> None:
        """Increase the replicas."""
        _check_count(group, count)
        await self._resize(self._find.group(group), count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Mark the machines for deletion and decrease the replicas, all or none.

        Machines that already go are left alone, however often they are deleted. Failed machines
        can be deleted at the minimum size too: they are deleted directly, and their set replaces
        them.
        """
        found = self._find.group(group)
        machines = [one for one in self._find.machines(found, nodes) if not is_deleting(one)]
        async with self._locks[group]:
            size = await self._scaler(found).size()
            plan = await self._plan(found, machines, size)
            if plan.machines:
                self._refuse_rollout(found)
                await self._delete(found, plan, size)

    async def _plan(
        self, group: ScalableGroup, machines: Sequence[Machine], size: int
    ) -> DeletionPlan:
        """Plan by the server's state: what the watch has may be older than our last write."""
        names = self._cluster.names
        wanted = await self._marks.read_again(machines)
        known, _ = self._members(group)
        if not any(is_marked(one, names) for one in (*wanted, *known)):
            return plan_deletion(wanted, (), size, names)
        found = await self._marks.list_machines(group.resource.namespace)
        members, others = self._index.members_among(group, found)
        return plan_deletion(wanted, members, size - others, names)

    async def _delete(self, group: ScalableGroup, plan: DeletionPlan, size: int) -> None:
        going = plan.machines
        left = size - len(going)
        if left < group.group.min_size and all(map(has_failed, going)):
            for one in going:
                await self._marks.delete(one)
            return
        check_bounds(group.group, left, grows=False)
        await self._marks.withdraw(plan.stale)
        await self._marks.mark(going, left)
        try:
            self._written[group.group.id] = await self._scaler(group).change(left - size, size)
        except (RefusedError, NodeGroupNotFoundError):
            # After any other error the size may be written: the marks must stay.
            await self._marks.unmark(going)
            raise

    async def decrease_target(self, group: str, count: int) -> None:
        """Decrease the replicas by machines without a node; Cluster API deletes those first."""
        _check_count(group, count)
        found = self._find.group(group)
        self._refuse_rollout(found)
        async with self._locks[group]:
            size = await self._scaler(found).size()
            there = self._nodes_of(found, size)
            if size - count < there:
                raise RefusedError(f"node group {group}: {there} are nodes already")
            await self._resize(found, -count)

    async def refresh(self) -> None:
        """Wait until the informers have synced."""
        await self._informers.synced("Cluster API's objects")
        known = {one.group.id for one in self._index.groups()}
        self._instances = {group: kept for group, kept in self._instances.items() if group in known}
        for gone in self._locks.keys() - known:
            del self._locks[gone]

    async def cleanup(self) -> None:
        """Do nothing: nothing is held."""

    def _bounded(self, group: ScalableGroup) -> CloudNodeGroup:
        """Return the group; during a rollout its minimum is its current size."""
        if not self._index.is_rolling_out(group):
            return group.group
        size = min(group.resource.spec.replicas or 0, group.group.max_size)
        least = max(group.group.min_size, size)
        return replace(group.group, min_size=least, debug=f"{group.group.debug}, rolling out")

    def _refuse_rollout(self, group: ScalableGroup) -> None:
        if self._index.is_rolling_out(group):
            raise RefusedError(f"node group {group.group.id} is being rolled out")

    async def _read_instances(self, group: ScalableGroup, size: int) -> tuple[Instance, ...]:
        going = self._going(group, size)
        if isinstance(group.resource, MachinePool):
            return tuple(self._listed(one, going) for one in group.resource.spec.provider_id_list)
        found = [
            instance_of(one, await self._find.provider_id(one), is_going=one.key in going)
            for one in self._index.machines_of(group)
        ]
        return tuple(found)

    def _going(self, group: ScalableGroup, size: int) -> set[str]:
        """Return the keys of the machines that Cluster API deletes to reach the size."""
        members, others = self._members(group)
        return machines_to_go(members, size - others, self._cluster.names)

    def _members(self, group: ScalableGroup) -> tuple[list[Machine], int]:
        """Return the group's machines, and how many instances have no machine."""
        if not isinstance(group.resource, MachinePool):
            return self._index.machines_of(group), 0
        ids = group.resource.spec.provider_id_list
        found = [one for one in map(self._index.machine, ids) if one is not None]
        return found, len(ids) - len(found)

    def _nodes_of(self, group: ScalableGroup, size: int) -> int:
        going = self._going(group, size)
        members, others = self._members(group)
        if isinstance(group.resource, MachinePool):
            return others + sum(one.key not in going for one in members)
        return sum(is_node(one) and one.key not in going for one in members)

    def _listed(self, provider_id: str, going: Collection[str]) -> Instance:
        machine = self._index.machine(provider_id)
        if machine is None:
            return Instance(provider_id, InstanceState.RUNNING)
        return instance_of(machine, provider_id, is_going=machine.key in going)

    def _scaler(self, group: ScalableGroup) -> Scaler:
        resource = self._cluster.resources[group.resource.kind]
        return Scaler(self._cluster.management, resource, group)

    async def _resize(self, group: ScalableGroup, by: int) -> None:
        self._written[group.group.id] = await self._scaler(group).change(by)


def _check_count(group: str, count: int) -> None:
    if count <= 0:
        raise InvalidRequestError(f"node group {group}: cannot be resized by {count}")


def _is_older(one: Scalable, written: WrittenSize) -> bool:
    """Whether an object's version is older than our write; versions may not be numbers."""
    known, ours = one.metadata.resource_version, written.version
    return known.isdecimal() and ours.isdecimal() and int(known) < int(ours)


def _is_nameless(one: Instance) -> bool:
    """Whether a running machine's provider ID is not known yet."""
    return one.state is InstanceState.RUNNING and bool(machine_key(one.provider_id))


GROUP_VARIABLE = "CAPI_GROUP"
VERSION_VARIABLE = "CAPI_VERSION"
ARCHITECTURE_VARIABLE = "CAPI_SCALE_ZERO_DEFAULT_ARCH"


@asynccontextmanager
async def open_provider(
    options: ProviderOptions, client: Client, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[Provider]:
    """Watch the management cluster's objects, and open the provider."""
    specs = _specs(options)
    async with AsyncExitStack() as stack:
        management = await _management(options, client, environment, stack)
        cluster = await _cluster(management, client, environment)
        names = cluster.names
        index = MachineIndex(
            names, lambda one: not specs or any(spec.takes(one, names) for spec in specs)
        )
        informers = await stack.enter_async_context(Informers(management))
        which = Selection(common_namespace(specs))
        machines = informers.of(cluster.machines, which)
        machines.on_change(index.machine_changed)
        scalables = [informers.of(one, which) for one in cluster.resources.values()]
        for one in scalables:
            one.on_change(index.scalable_changed)
            one.on_malformed(index.undecodable_handler(one.resource.kind))
        yield ClusterApiProvider(cluster, index, SyncedInformers([machines, *scalables]))


async def _management(
    options: ProviderOptions, client: Client, known: Mapping[str, str], stack: AsyncExitStack
) -> Client:
    access = _access(options, known)
    if access is None:
        return client
    return await stack.enter_async_context(Client(access, clock=client.clock, rng=client.rng))


def check_options(options: ProviderOptions) -> Access | None:
    """Return the access to the management cluster; None if it is the cluster that is scaled.

    ProviderOptionError if any option is invalid.
    """
    _specs(options)
    return _access(options, os.environ)


def _access(options: ProviderOptions, known: Mapping[str, str]) -> Access | None:
    try:
        if options.cloud_config is not None:
            return load_access(options.cloud_config)
        if options.clusterapi_cloud_config_authoritative:
            return from_service_account(known)
    except ConfigError as error:
        place = "cloud-config" if options.cloud_config else "clusterapi-cloud-config-authoritative"
        raise ProviderOptionError(f"--{place}: {error}") from None
    return None


def _specs(options: ProviderOptions) -> list[DiscoverySpec]:
    if options.nodes:
        raise ProviderOptionError("--nodes: not for clusterapi; set sizes by annotations of groups")
    return [read_spec(text) for text in options.node_group_auto_discovery]


async def _cluster(
    management: Client, workload: Client, known: Mapping[str, str]
) -> ClusterApiClients:
    group = known.get(GROUP_VARIABLE) or GROUP
    version = known.get(VERSION_VARIABLE) or await version_of(management, group)
    machines = await resource(management, group, version, Machine)
    if machines is None:
        raise ProviderOptionError(f"--cloud-provider clusterapi: no Machines in {group}/{version}")
    found: dict[str, Resource[Scalable]] = {}
    kinds: tuple[type[Scalable], ...] = (MachineDeployment, MachineSet, MachinePool)
    for kind in kinds:
        served = await resource(management, group, version, kind)
        if served is not None:
            found[kind.__name__] = served
    architecture = known.get(ARCHITECTURE_VARIABLE) or "amd64"
    return ClusterApiClients(management, workload, found, machines, ApiNames(group), architecture)
