"""Cluster API as a provider: sizes through the scale subresource, machines as instances.

The objects are in the management cluster, which may be another one than the cluster that is scaled.
They are followed, so that questions cost no requests; what changes a size asks the server itself. A
size that we have just written counts until the server tells us something newer.

Which resources are groups: `clusterapi:namespace=…,clusterName=…,label=value`, may be repeated.
Without any, all are.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from bayplan.autoscaler.providers.clusterapi.index import Finder, Index
from bayplan.autoscaler.providers.clusterapi.infrastructure import (
    Infrastructures,
    resource,
    version_of,
)
from bayplan.autoscaler.providers.clusterapi.objects import (
    GPU_LABEL,
    GROUP,
    ApiNames,
    Machine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    Scalable,
    has_failed,
    instance_of,
    is_deleting,
    is_node,
    machine_key,
)
from bayplan.autoscaler.providers.clusterapi.scaling import Marks, Scaler, Sized, within
from bayplan.autoscaler.providers.clusterapi.templates import Group, gpu_types, template
from bayplan.autoscaler.providers.descriptions import options_over
from bayplan.autoscaler.providers.informers import SyncedInformers
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client, Informers, Resource, Selection
from bayplan.client.config.access import Access
from bayplan.client.config.loading import from_service_account, load_access
from bayplan.client.errors import ConfigError
from bayplan.kube.names import is_label_value, is_qualified_name
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceState,
    InvalidRequestError,
    NodeGroup,
    NodeRef,
    NotOfferedError,
    Provider,
    RefusedError,
    TemplateNodeInfo,
)

_FLAG = "--node-group-auto-discovery"
_DISCOVERER = "clusterapi"


@dataclass(frozen=True, slots=True)
class Spec:
    """Those of a namespace, of a cluster, with labels."""

    namespace: str = ""
    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def takes(self, one: Scalable, words: ApiNames) -> bool:
        """Whether a resource is among them."""
        labels = one.metadata.labels
        cluster = one.spec.cluster_name or labels.get(words.cluster_name, "")
        return (
            self.namespace in {"", one.namespace}
            and self.cluster in {"", cluster}
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


def read_spec(text: str) -> Spec:
    """What a flag says; ProviderOptionError if it cannot be read."""
    discoverer, _, rest = text.partition(":")
    if discoverer != _DISCOVERER:
        raise ProviderOptionError(f"{_FLAG} {text[:80]!r}: must begin with {_DISCOVERER}:")
    pairs = [one.partition("=") for one in rest.split(",") if one]
    for key, equals, value in pairs:
        if not equals or not is_qualified_name(key) or not is_label_value(value):
            raise ProviderOptionError(f"{_FLAG} {text[:80]!r}: {key[:80]!r} is no key=value")
    said = {key: value for key, _, value in pairs}
    return Spec(said.pop("namespace", ""), said.pop("clusterName", ""), said)


def common_namespace(specs: Sequence[Spec]) -> str:
    """The namespace that all are of; empty if they are not of one."""
    named = {one.namespace for one in specs}
    return named.pop() if len(named) == 1 else ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the objects are, and where the nodes are."""

    management: Client
    workload: Client
    resources: Mapping[str, Resource[Scalable]]
    """By kind, what can be a group."""
    machines: Resource[Machine]
    words: ApiNames
    architecture: str
    """What nodes are of which nobody says so."""

    @property
    def is_one(self) -> bool:
        """Whether both are the same cluster."""
        return self.management is self.workload


class ClusterApi:
    """Answers for the groups of a management cluster."""

    def __init__(self, cluster: Cluster, index: Index, following: SyncedInformers) -> None:
        self._cluster = cluster
        self._index = index
        self._following = following
        self._find = Finder(index, cluster.words, cluster.workload)
        self._marks = Marks(cluster.management, cluster.machines, cluster.words)
        self._infrastructures = Infrastructures(cluster.management)
        self._written: dict[str, Sized] = {}
        self._instances: dict[str, tuple[Hashable, tuple[Instance, ...]]] = {}

    async def groups(self) -> Sequence[NodeGroup]:
        """All groups, in the order of their names."""
        return sorted(map(self._bounded, self._index.groups()), key=lambda one: one.id)

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The group whose machine or pool the node is."""
        found = self._find.group_of(node)
        return None if found is None else self._bounded(found)

    async def target_size(self, group: str) -> int:
        """The replicas that are wanted."""
        found = self._find.group(group)
        written = self._written.get(group)
        if written is not None and _is_older(found.resource, written):
            return written.replicas
        self._written.pop(group, None)
        return found.resource.spec.replicas or 0

    async def instances(self, group: str) -> Sequence[Instance]:
        """Its machines; of a pool, what its list of provider IDs says."""
        found = self._find.group(group)
        version = self._index.version(found)
        kept = self._instances.get(group)
        if kept is not None and kept[0] == version:
            return kept[1]
        made = await self._made(found)
        if not any(map(_is_nameless, made)):
            self._instances[group] = version, made
        return made

    async def template(self, group: str) -> TemplateNodeInfo:
        """What annotations, spec and infrastructure say of the next node."""
        found = self._find.group(group)
        ref = found.resource.spec.template.spec.infrastructure_ref
        said = await self._infrastructures.find(ref, found.resource.namespace)
        return template(found, said, self._cluster.architecture)

    async def problems(self) -> Sequence[GroupProblem]:
        """What resources say and cannot be read; objects of another cluster cannot have events."""
        found = list(self._index.problems())
        return found if self._cluster.is_one else [replace(one, about=None) for one in found]

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """What annotations say, over the defaults."""
        return options_over(self._find.group(group).options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Refuse: Cluster API knows no prices."""
        raise NotOfferedError(f"Cluster API has no price of {node.name} from {start} to {end}")

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Refuse: Cluster API knows no prices."""
        raise NotOfferedError(f"Cluster API has no price of {pod.key} from {start} to {end}")

    async def gpu_label(self) -> str:
        """The label that Cluster API's nodes with GPUs are to have."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """What groups say in their labels."""
        return gpu_types(list(self._index.groups()))

    async def increase(self, group: str, count: int) -> None:
        """Want more replicas."""
        _check_count(group, count)
        await self._resize(self._find.group(group), count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Mark the machines and want so many fewer; all of them or none.

        Machines that failed can be given back at the minimum too: they are deleted themselves, and
        their set makes others.
        """
        found = self._find.group(group)
        going = [one for one in self._find.machines(found, nodes) if not is_deleting(one)]
        if not going:
            return
        self._refuse_rollout(found)
        left = await self._scaler(found).size() - len(going)
        if left < found.group.min_size and all(map(has_failed, going)):
            for one in going:
                await self._marks.delete(one)
            return
        within(found.group, left, grows=False)
        await self._marks.mark(going)
        try:
            await self._resize(found, -len(going))
        except BaseException:
            await self._marks.unmark(going)
            raise

    async def decrease_target(self, group: str, count: int) -> None:
        """Want fewer of those that are no nodes yet; Cluster API deletes such machines first."""
        _check_count(group, count)
        found = self._find.group(group)
        self._refuse_rollout(found)
        there = self._nodes_of(found)
        if await self._scaler(found).size() - count < there:
            raise RefusedError(f"node group {group}: {there} are nodes already")
        await self._resize(found, -count)

    async def refresh(self) -> None:
        """See that there is a copy of everything; what it says is kept up by itself."""
        await self._following.synced("Cluster API's objects")
        known = {one.group.id for one in self._index.groups()}
        self._instances = {group: kept for group, kept in self._instances.items() if group in known}

    async def cleanup(self) -> None:
        """Nothing is held."""

    def _bounded(self, group: Group) -> NodeGroup:
        """The group; while it is rolled out, one that cannot be made smaller."""
        if not self._index.is_rolling_out(group):
            return group.group
        size = min(group.resource.spec.replicas or 0, group.group.max_size)
        least = max(group.group.min_size, size)
        return replace(group.group, min_size=least, debug=f"{group.group.debug}, rolling out")

    def _refuse_rollout(self, group: Group) -> None:
        if self._index.is_rolling_out(group):
            raise RefusedError(f"node group {group.group.id} is being rolled out")

    async def _made(self, group: Group) -> tuple[Instance, ...]:
        if isinstance(group.resource, MachinePool):
            return tuple(self._listed(one) for one in group.resource.spec.provider_id_list)
        machines = self._index.machines_of(group)
        return tuple([instance_of(one, await self._find.provider_id(one)) for one in machines])

    def _nodes_of(self, group: Group) -> int:
        if isinstance(group.resource, MachinePool):
            return len(group.resource.spec.provider_id_list)
        return sum(map(is_node, self._index.machines_of(group)))

    def _listed(self, provider_id: str) -> Instance:
        machine = self._index.machine(provider_id)
        if machine is None:
            return Instance(provider_id, InstanceState.RUNNING)
        return instance_of(machine, provider_id)

    def _scaler(self, group: Group) -> Scaler:
        resource = self._cluster.resources[group.resource.kind]
        return Scaler(self._cluster.management, resource, group)

    async def _resize(self, group: Group, by: int) -> None:
        self._written[group.group.id] = await self._scaler(group).change(by)


def _check_count(group: str, count: int) -> None:
    if count <= 0:
        raise InvalidRequestError(f"node group {group}: cannot be resized by {count}")


def _is_older(one: Scalable, written: Sized) -> bool:
    """Whether we know an object as it was before we wrote; versions may be no numbers."""
    known, ours = one.metadata.resource_version, written.version
    return known.isdecimal() and ours.isdecimal() and int(known) < int(ours)


def _is_nameless(one: Instance) -> bool:
    """Whether a machine's node is not known yet that should have its ID; it may be next time."""
    return one.state is InstanceState.RUNNING and bool(machine_key(one.provider_id))


GROUP_VARIABLE = "CAPI_GROUP"
VERSION_VARIABLE = "CAPI_VERSION"
ARCHITECTURE_VARIABLE = "CAPI_SCALE_ZERO_DEFAULT_ARCH"


@asynccontextmanager
async def open_provider(
    options: ProviderOptions, client: Client, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[Provider]:
    """Follow the management cluster's objects, and answer for its groups."""
    specs = _specs(options)
    async with AsyncExitStack() as stack:
        management = await _management(options, client, environment, stack)
        cluster = await _cluster(management, client, environment)
        words = cluster.words
        index = Index(words, lambda one: not specs or any(spec.takes(one, words) for spec in specs))
        informers = await stack.enter_async_context(Informers(management))
        which = Selection(common_namespace(specs))
        machines = informers.of(cluster.machines, which)
        machines.on_change(index.machine_changed)
        scalables = [informers.of(one, which) for one in cluster.resources.values()]
        for one in scalables:
            one.on_change(index.scalable_changed)
            one.on_unfit(index.unfit(one.resource.kind))
        yield ClusterApi(cluster, index, SyncedInformers([machines, *scalables]))


async def _management(
    options: ProviderOptions, client: Client, known: Mapping[str, str], stack: AsyncExitStack
) -> Client:
    access = _access(options, known)
    if access is None:
        return client
    return await stack.enter_async_context(Client(access, clock=client.clock, rng=client.rng))


def check_options(options: ProviderOptions) -> Access | None:
    """How to reach the cluster of Cluster API's objects; None if it is the one that is scaled.

    ProviderOptionError if that, or anything else in the options, makes no sense.
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


def _specs(options: ProviderOptions) -> list[Spec]:
    if options.nodes:
        raise ProviderOptionError("--nodes: Cluster API's groups say their bounds themselves")
    return [read_spec(text) for text in options.node_group_auto_discovery]


async def _cluster(management: Client, workload: Client, known: Mapping[str, str]) -> Cluster:
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
    return Cluster(management, workload, found, machines, ApiNames(group), architecture)
