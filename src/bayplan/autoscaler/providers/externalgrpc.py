"""A provider behind Cluster Autoscaler's externalgrpc protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client
from bayplan.nodegroups import Provider
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import CloudConfig, read_config


@asynccontextmanager
async def open_provider(options: ProviderOptions, _: Client) -> AsyncIterator[Provider]:
    """Connect to the address of --cloud-config."""
    async with ExternalGrpc(check_options(options)) as provider:
        yield provider


def check_options(options: ProviderOptions) -> CloudConfig:
    """Return the connection of --cloud-config; ProviderOptionError without it."""
    if options.cloud_config is None:
        raise ProviderOptionError("--cloud-config: externalgrpc needs a file with its address")
    return config_at(options.cloud_config)


def config_at(place: Path | str) -> CloudConfig:
    """Return the connection of a configuration file or a socket."""
    return read_config(Path(str(place).removeprefix("unix:")))
