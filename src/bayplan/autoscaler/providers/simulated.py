"""The cloud of `bayplan up`, over externalgrpc; its address is --cloud-config or a variable."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from bayplan.autoscaler.providers.externalgrpc import config_at
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client
from bayplan.nodegroups import Provider
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import VARIABLE, CloudConfig


@asynccontextmanager
async def open_provider(
    options: ProviderOptions, _: Client, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[Provider]:
    """Connect to the simulated cloud."""
    async with ExternalGrpc(check_options(options, environment)) as provider:
        yield provider


def check_options(
    options: ProviderOptions, environment: Mapping[str, str] = os.environ
) -> CloudConfig:
    """Return the connection of --cloud-config or the variable; ProviderOptionError without."""
    address = options.cloud_config or environment.get(VARIABLE)
    if not address:
        raise ProviderOptionError(
            f"--cloud-config: set it, or export {VARIABLE} as `bayplan up` prints it"
        )
    return config_at(address)
