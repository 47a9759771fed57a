"""Opening Cluster API: which cluster its objects are in, what is served there, what is followed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from bayplan.autoscaler.providers.clusterapi import serving
from bayplan.autoscaler.providers.clusterapi.discovery import Spec, common_namespace, read_spec
from bayplan.autoscaler.providers.clusterapi.index import Index
from bayplan.autoscaler.providers.clusterapi.kinds import (
    Machine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    Scalable,
)
from bayplan.autoscaler.providers.clusterapi.provider import Cluster, ClusterApi
from bayplan.autoscaler.providers.clusterapi.words import GROUP, Words
from bayplan.autoscaler.providers.following import Following
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client, Informers, Resource, Selection
from bayplan.client.config.access import Access
from bayplan.client.config.loading import from_service_account, load_access
from bayplan.client.errors import ConfigError
from bayplan.nodegroups import Provider

GROUP_VARIABLE = "CAPI_GROUP"
VERSION_VARIABLE = "CAPI_VERSION"
ARCHITECTURE_VARIABLE = "CAPI_SCALE_ZERO_DEFAULT_ARCH"


@asynccontextmanager
async def open_cluster_api(
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
        yield ClusterApi(cluster, index, Following([machines, *scalables]))


async def _management(
    options: ProviderOptions, client: Client, known: Mapping[str, str], stack: AsyncExitStack
) -> Client:
    access = _access(options, known)
    if access is None:
        return client
    return await stack.enter_async_context(Client(access, clock=client.clock, rng=client.rng))


def management_access(options: ProviderOptions) -> Access | None:
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
    version = known.get(VERSION_VARIABLE) or await serving.version_of(management, group)
    machines = await serving.resource(management, group, version, Machine)
    if machines is None:
        raise ProviderOptionError(f"--cloud-provider clusterapi: no Machines in {group}/{version}")
    found: dict[str, Resource[Scalable]] = {}
    kinds: tuple[type[Scalable], ...] = (MachineDeployment, MachineSet, MachinePool)
    for kind in kinds:
        served = await serving.resource(management, group, version, kind)
        if served is not None:
            found[kind.__name__] = served
    architecture = known.get(ARCHITECTURE_VARIABLE) or "amd64"
    return Cluster(management, workload, found, machines, Words(group), architecture)
