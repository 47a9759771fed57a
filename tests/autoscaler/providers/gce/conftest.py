"""Compute Engine as the tests' own server has it, and providers of its groups."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from random import Random

import pytest
from google.auth.credentials import AnonymousCredentials

from bayplan.autoscaler.providers.gce import open_provider
from bayplan.autoscaler.providers.gce.sdk import GceSession, GceTimeouts
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.client import Client
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.inprocess import in_process_client
from bayplan.nodegroups import Provider
from tests.autoscaler.providers.gce.fake_gce import FakeGce, serving
from tests.autoscaler.providers.gce.project import PROJECT, FakeProject
from tests.embedded.cloud.clouds import ManualClock

LIMITS = GceTimeouts(request=10.0, whole=25.0)
HASTE = GceTimeouts(request=0.3, whole=10.0)


@pytest.fixture
async def gce() -> AsyncIterator[FakeGce]:
    async with serving() as made:
        yield made


@pytest.fixture
async def project(gce: FakeGce) -> FakeProject:
    return gce.project


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


def session_of(gce: FakeGce, project: str = PROJECT) -> GceSession:
    credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return GceSession(credentials, project, gce.host, "http")


class OpenedGce:
    """Opens providers of some groups."""

    def __init__(self, client: Client, clock: ManualClock, session: GceSession) -> None:
        self._client = client
        self._clock = clock
        self._session = session

    def __call__(
        self, *nodes: str, discovery: tuple[str, ...] = (), limits: GceTimeouts = LIMITS
    ) -> RefreshedGce:
        options = ProviderOptions("gce", None, nodes, discovery)
        return RefreshedGce(open_provider(options, self._client, self._session, limits))

    async def later(self, provider: Provider, seconds: float = 61.0) -> None:
        """The next loop, so much later."""
        self._clock.moment += timedelta(seconds=seconds)
        await provider.refresh()


class RefreshedGce:
    """Opens, and reads for the first time."""

    def __init__(self, opened: AbstractAsyncContextManager[Provider]) -> None:
        self._opened = opened

    async def __aenter__(self) -> Provider:
        provider = await self._opened.__aenter__()
        await provider.refresh()
        return provider

    async def __aexit__(self, *_: object) -> None:
        await self._opened.__aexit__(None, None, None)


@pytest.fixture
async def opened(gce: FakeGce, client: Client, clock: ManualClock) -> OpenedGce:
    return OpenedGce(client, clock, session_of(gce))
