"""Opens the cloud provider that the options name.

    async with open_provider(options, client) as provider:
        for group in await provider.groups():
            ...

A cloud provider is a module or package of this one with the name of `--cloud-provider` and the
functions of `CloudModule`; `nodegroups.clouds` lists them. Only the chosen one is imported, since
all are slow to import. Declarations of node groups are overlaid on every provider: those of a file,
and NodeGroups of the cluster if their CRD is installed when the provider is opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Protocol, cast, get_args

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.overlay import OverlayProvider
from bayplan.autoscaler.providers.declared.sources import (
    NODE_GROUPS,
    FileDeclarations,
    NodeGroupStatuses,
    ObjectDeclarations,
    read_groups,
)
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.base.suggestions import no_such
from bayplan.client import Client, Informers
from bayplan.nodegroups import Provider
from bayplan.nodegroups.clouds import CloudName

PROVIDERS = (*sorted(get_args(CloudName)), "simulated")
"""The values of `--cloud-provider`: those that can be deployed, and that of `bayplan up`."""


class CloudModule(Protocol):
    """The functions of a cloud provider's module."""

    def open_provider(
        self, options: ProviderOptions, client: Client
    ) -> AbstractAsyncContextManager[Provider]:
        """Open the provider."""
        ...

    def check_options(self, options: ProviderOptions) -> object:
        """Raise ProviderOptionError or ConfigFileError if the options are invalid."""
        ...


@asynccontextmanager
async def open_provider(
    options: ProviderOptions, client: Client, *, writes: bool = True
) -> AsyncIterator[Provider]:
    """Open the provider; ProviderOptionError or ConfigFileError if the options are invalid.

    Without `writes`, as in a dry run, not even a NodeGroup's status is written.
    """
    file = check_options(options)
    async with AsyncExitStack() as stack:
        opened = _module(options.cloud_provider).open_provider(options, client)
        inner = await stack.enter_async_context(opened)
        yield await _overlaid(inner, file, client, stack, writes=writes)


def check_options(options: ProviderOptions) -> tuple[Declaration, ...]:
    """Check all options and their files without calling the cloud; return the file's declarations.
    ProviderOptionError or ConfigFileError if they are invalid.
    """
    if options.cloud_provider not in PROVIDERS:
        message = no_such("cloud provider", options.cloud_provider, PROVIDERS)
        raise ProviderOptionError(f"--cloud-provider: {message}")
    _module(options.cloud_provider).check_options(options)
    return read_groups(options.node_groups) if options.node_groups else ()


def _module(name: str) -> CloudModule:
    """Import the module of one of PROVIDERS."""
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
        return OverlayProvider(inner, FileDeclarations(file)) if file else inner
    informers = await stack.enter_async_context(Informers(client))
    informer = informers.of(NODE_GROUPS)
    report = NodeGroupStatuses(client, informer).write if writes else None
    return OverlayProvider(inner, ObjectDeclarations(informer, file), report)
