"""A management cluster, and a provider that answers for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bayplan.client import Client
from bayplan.nodegroups import Provider
from tests.autoscaler.providers.clusterapi.capi import Capi
from tests.autoscaler.providers.clusterapi.providers import opened
from tests.client.conftest import access, client

__all__ = ["access", "client"]


@pytest.fixture(params=["v1beta1", "v1beta2"])
async def capi(request: pytest.FixtureRequest, client: Client) -> Capi:
    made = Capi(client, version=request.param)
    await made.install()
    return made


@pytest.fixture
async def provider(capi: Capi) -> AsyncIterator[Provider]:
    async with opened(capi) as made:
        yield made
