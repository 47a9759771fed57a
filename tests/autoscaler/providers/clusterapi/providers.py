"""A provider of what is played, and what the tests ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bayplan.autoscaler.providers.clusterapi import open_provider
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.nodegroups import NodeGroupError, NodeRef, Provider
from tests.autoscaler.providers.clusterapi.capi import Capi
from tests.autoscaler.providers.conditions import until


@asynccontextmanager
async def opened(
    capi: Capi, *discovery: str, config: Path | None = None, **environment: str
) -> AsyncIterator[Provider]:
    options = ProviderOptions("clusterapi", config, node_group_auto_discovery=discovery)
    async with open_provider(options, capi.workload, environment) as provider:
        await provider.refresh()
        yield provider


async def seen(provider: Provider, group: str, **wanted: object) -> None:
    """Wait until the provider has heard of how things are: a target, or states of instances."""

    async def holds() -> bool:
        try:
            found = {
                "target": await provider.target_size(group),
                "states": sorted(one.state.value for one in await provider.instances(group)),
                "errors": sum(one.error is not None for one in await provider.instances(group)),
            }
        except NodeGroupError:
            return False
        return all(found[name] == value for name, value in wanted.items())

    await until(holds)


async def names(provider: Provider) -> list[str]:
    return [one.id for one in await provider.groups()]


def node(name: str) -> NodeRef:
    return NodeRef(f"infra:///zone-a/{name}", name)
