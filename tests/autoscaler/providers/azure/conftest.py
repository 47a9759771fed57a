"""Providers of scale sets of the fake Azure, and a clock that is moved by hand."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from random import Random

import pytest
from azure.core.credentials import AccessToken

from bayplan.autoscaler.providers.azure import open_provider
from bayplan.autoscaler.providers.azure.connection import AzureConnection, AzureLimits
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.client import Client
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.inprocess import in_process_client
from bayplan.nodegroups import Provider
from tests.autoscaler.providers.azure.fake_azure import (
    GROUP,
    SUBSCRIPTION,
    TOKEN,
    FakeAzure,
    serve_azure,
)
from tests.embedded.cloud.clouds import ManualClock

LIMITS = AzureLimits(connect=2.0, read=10.0, whole=30.0)
HASTE = AzureLimits(connect=2.0, read=0.3, whole=10.0)
ENVIRONMENT = {
    "ARM_SUBSCRIPTION_ID": SUBSCRIPTION,
    "ARM_RESOURCE_GROUP": GROUP,
    "ARM_USE_MANAGED_IDENTITY_EXTENSION": "true",
}


class FakeCredential:
    """A credential of azure-core with the token that the fake Azure takes."""

    async def get_token(self, *scopes: str, **options: object) -> AccessToken:
        return AccessToken(TOKEN, int(time.time()) + 3600)

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> FakeCredential:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


@pytest.fixture
async def azure() -> AsyncIterator[FakeAzure]:
    async with serve_azure() as made:
        yield made


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def client(clock: ManualClock) -> AsyncIterator[Client]:
    """The cluster whose nodes they are."""
    plane = ControlPlane(PlaneConfig(clock=clock, rng=Random(1)))
    await plane.start()
    async with in_process_client(plane, rng=Random(1)) as made:
        yield made
    await plane.stop()


class Opened:
    """A provider of some scale sets, and its clock."""

    def __init__(self, azure: FakeAzure, client: Client, clock: ManualClock) -> None:
        self._azure = azure
        self._client = client
        self._clock = clock

    def __call__(
        self,
        *nodes: str,
        discovery: tuple[str, ...] = (),
        limits: AzureLimits = LIMITS,
        url: str = "",
        credential: FakeCredential | None = None,
        **variables: str,
    ) -> Opening:
        options = ProviderOptions("azure", None, nodes, discovery)
        connection = AzureConnection(url or self._azure.url, credential or FakeCredential())
        known = {**ENVIRONMENT, **variables}
        return Opening(open_provider(options, self._client, known, limits, connection))

    async def later(self, provider: Provider, seconds: float = 61.0) -> None:
        """The next loop, so much later."""
        self._clock.moment += timedelta(seconds=seconds)
        await provider.refresh()


class Opening:
    """Opens, and reads for the first time."""

    def __init__(self, opened: AbstractAsyncContextManager[Provider]) -> None:
        self._opened = opened

    async def __aenter__(self) -> Provider:
        provider = await self._opened.__aenter__()
        try:
            await provider.refresh()
        except BaseException:
            await self._opened.__aexit__(None, None, None)
            raise
        return provider

    async def __aexit__(self, *_: object) -> None:
        await self._opened.__aexit__(None, None, None)


@pytest.fixture
async def opened(azure: FakeAzure, client: Client, clock: ManualClock) -> Opened:
    return Opened(azure, client, clock)
