"""The clouds that there are, and opening the one that the options name.

    async with open_provider(options, client) as provider:
        for group in await provider.groups():
            ...

A cloud is a module or package of this one that has the name of `--cloud-provider` and offers what
`CloudModule` says; `nodegroups.clouds` lists them. It is imported when that cloud is asked for: all
of them are slow to import. Declarations of node groups are laid over every cloud: those of a file,
and NodeGroups of the cluster if their kind is installed when the cloud is opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Protocol, cast, get_args

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.overlay import Overlay
from bayplan.autoscaler.providers.declared.sources import (
    NODE_GROUPS,
    FileDeclarations,
    ObjectDeclarations,
    Statuses,
    read_groups,
)
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.base.suggestions import no_such
from bayplan.client import Client, Informers
from bayplan.nodegroups import Provider
from bayplan.nodegroups.clouds import CloudName

PROVIDERS = (*sorted(get_args(CloudName)), "simulated")
"""The values of `--cloud-provider`: those that can be deployed, and the cloud of `bayplan up`."""


class CloudModule(Protocol):
    """What the module of a cloud offers."""

    def open_provider(
        self, options: ProviderOptions, client: Client
    ) -> AbstractAsyncContextManager[Provider]:
        """Open the cloud."""
        ...

    def check_options(self, options: ProviderOptions) -> object:
        """Raise ProviderOptionError or ConfigFileError if options make no sense to the cloud."""
        ...


@asynccontextmanager
async def open_provider(
    options: ProviderOptions, client: Client, *, writes: bool = True
) -> AsyncIterator[Provider]:
    """The cloud; ProviderOptionError or ConfigFileError if the options make no sense.

    Without `writes`, as in a dry run, not even a NodeGroup's status is written.
    """
    file = check_options(options)
    async with AsyncExitStack() as stack:
        opened = _module(options.cloud_provider).open_provider(options, client)
        inner = await stack.enter_async_context(opened)
        yield await _overlaid(inner, file, client, stack, writes=writes)


def check_options(options: ProviderOptions) -> tuple[Declaration, ...]:
    """What the file of node groups declares, once all options and their files have been read;
    ProviderOptionError or ConfigFileError if they make no sense, whatever the cloud may say.
    """
    if options.cloud_provider not in PROVIDERS:
        said = no_such("cloud provider", options.cloud_provider, PROVIDERS)
        raise ProviderOptionError(f"--cloud-provider: {said}")
    _module(options.cloud_provider).check_options(options)
    return read_groups(options.node_groups) if options.node_groups else ()


def _module(name: str) -> CloudModule:
    """The module of one of PROVIDERS."""
    return cast("CloudModule", import_module(f"bayplan.autoscaler.providers.{name}"))


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
