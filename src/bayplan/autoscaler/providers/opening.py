"""Opening the cloud that the options name, with declarations laid over it.

    async with open_provider(options, client) as provider:
        for group in await provider.groups():
            ...

NodeGroups of the cluster are followed if their kind is installed when the cloud is opened. What
only one cloud needs is imported when that cloud is asked for: all of them are slow to import.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.files import read_groups
from bayplan.autoscaler.providers.declared.overlay import Overlay
from bayplan.autoscaler.providers.declared.sources import (
    NODE_GROUPS,
    FileDeclarations,
    ObjectDeclarations,
)
from bayplan.autoscaler.providers.declared.statuses import Statuses
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.base.suggestions import no_such
from bayplan.client import Client, Informers
from bayplan.nodegroups import Provider
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import VARIABLE, CloudConfig, read_config

Opener = Callable[[ProviderOptions, Client], AbstractAsyncContextManager[Provider]]


@asynccontextmanager
async def open_provider(
    options: ProviderOptions, client: Client, *, writes: bool = True
) -> AsyncIterator[Provider]:
    """The cloud; ProviderOptionError or ConfigFileError if the options make no sense.

    Without `writes`, as in a dry run, not even a NodeGroup's status is written.
    """
    file = check_options(options)
    async with AsyncExitStack() as stack:
        inner = await stack.enter_async_context(PROVIDERS[options.cloud_provider](options, client))
        yield await _overlaid(inner, file, client, stack, writes=writes)


def check_options(options: ProviderOptions) -> tuple[Declaration, ...]:
    """What the file of node groups declares, once all options and their files have been read;
    ProviderOptionError or ConfigFileError if they make no sense, whatever the cloud may say.
    """
    if options.cloud_provider not in PROVIDERS:
        said = no_such("cloud provider", options.cloud_provider, PROVIDERS)
        raise ProviderOptionError(f"--cloud-provider: {said}")
    CHECKS[options.cloud_provider](options)
    return read_groups(options.node_groups) if options.node_groups else ()


async def _overlaid(
    inner: Provider,
    file: Sequence[Declaration],
    client: Client,
    stack: AsyncExitStack,
    *,
    writes: bool,
) -> Provider:
    if not await client.serves(NODE_GROUPS):
        return Overlay(inner, FileDeclarations(file)) if file else inner
    informers = await stack.enter_async_context(Informers(client))
    informer = informers.of(NODE_GROUPS)
    tell = Statuses(client, informer).tell if writes else None
    return Overlay(inner, ObjectDeclarations(informer, file), tell)


def _aws(options: ProviderOptions, client: Client) -> AbstractAsyncContextManager[Provider]:
    from bayplan.autoscaler.providers.aws.opening import open_aws  # noqa: PLC0415

    return open_aws(options, client)


def _check_aws(options: ProviderOptions) -> None:
    from bayplan.autoscaler.providers.aws.opening import wanted_groups  # noqa: PLC0415

    wanted_groups(options)


def _cluster_api(options: ProviderOptions, client: Client) -> AbstractAsyncContextManager[Provider]:
    from bayplan.autoscaler.providers.clusterapi.opening import open_cluster_api  # noqa: PLC0415

    return open_cluster_api(options, client)


def _check_cluster_api(options: ProviderOptions) -> None:
    from bayplan.autoscaler.providers.clusterapi.opening import management_access  # noqa: PLC0415

    management_access(options)


@asynccontextmanager
async def _external_grpc(options: ProviderOptions, _: Client) -> AsyncIterator[Provider]:
    async with ExternalGrpc(_external(options)) as provider:
        yield provider


def _external(options: ProviderOptions) -> CloudConfig:
    if options.cloud_config is None:
        raise ProviderOptionError("--cloud-config: externalgrpc needs a file that says where it is")
    return _config_at(options.cloud_config)


@asynccontextmanager
async def _simulated(
    options: ProviderOptions, _: Client, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[Provider]:
    """The cloud of `bayplan up`, where that says it is."""
    async with ExternalGrpc(_simulation(options, environment)) as provider:
        yield provider


def _simulation(
    options: ProviderOptions, environment: Mapping[str, str] = os.environ
) -> CloudConfig:
    place = options.cloud_config or environment.get(VARIABLE)
    if not place:
        raise ProviderOptionError(
            f"--cloud-config: which cloud? give it, or export {VARIABLE} as `bayplan up` prints it"
        )
    return _config_at(place)


def _config_at(place: Path | str) -> CloudConfig:
    return read_config(Path(str(place).removeprefix("unix:")))


PROVIDERS: Mapping[str, Opener] = {
    "aws": _aws,
    "clusterapi": _cluster_api,
    "externalgrpc": _external_grpc,
    "simulated": _simulated,
}
"""By the name that `--cloud-provider` has for it."""
CHECKS: Mapping[str, Callable[[ProviderOptions], object]] = {
    "aws": _check_aws,
    "clusterapi": _check_cluster_api,
    "externalgrpc": _external,
    "simulated": _simulation,
}
"""What of the options can be said to make no sense before any cloud is asked."""
