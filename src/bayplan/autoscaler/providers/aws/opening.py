"""Opening AWS: the region, the session, the groups that are asked for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from bayplan.autoscaler.providers.aws.inventory import Inventory
from bayplan.autoscaler.providers.aws.provider import Aws
from bayplan.autoscaler.providers.aws.sdk import Limits, Sdk, new_session
from bayplan.autoscaler.providers.aws.specs import Wanted, read_specs
from bayplan.autoscaler.providers.drivers import InstalledDrivers
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client
from bayplan.nodegroups import Provider


@asynccontextmanager
async def open_aws(
    options: ProviderOptions,
    client: Client,
    environment: Mapping[str, str] = os.environ,
    limits: Limits | None = None,
    session: Any = None,
) -> AsyncIterator[Provider]:
    """Answer for the groups that the options name or describe; boto3's session may be handed in."""
    wanted = wanted_groups(options)
    session = session or new_session()
    sdk = Sdk(session, _region(environment, session), client.clock, client.rng, limits)
    try:
        yield Aws(sdk, Inventory(sdk, wanted, client.clock), InstalledDrivers(client))
    finally:
        sdk.close()


def wanted_groups(options: ProviderOptions) -> Wanted:
    """The groups that the options name or describe."""
    if options.cloud_config is not None:
        raise ProviderOptionError(
            "--cloud-config: AWS is set up by its own variables and files, as AWS_REGION,"
            " AWS_PROFILE and AWS_ENDPOINT_URL"
        )
    return read_specs(options.nodes, options.node_group_auto_discovery)


def _region(known: Mapping[str, str], session: Any) -> str:
    said = known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION")
    region = said or session.region_name
    if not region:
        raise ProviderOptionError("--cloud-provider aws: which region? set AWS_REGION")
    return str(region)
