"""The cluster under test: an embedded one of the test's own, or whatever KUBECONFIG_E2E names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from bayplan.client import Client
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.lab import VirtualLab
from tests.clocks import in_virtual_time
from tests.scheduler.conftest import access, client, namespace, plain_client

__all__ = ["access", "client", "namespace", "plain_client"]


@pytest.fixture
async def virtual_client() -> AsyncIterator[Client]:
    """A client of an empty cluster in virtual time."""
    async with VirtualLab(parse_cluster(b"seed: 1\n", "empty", Path())) as lab:
        yield lab.client()


@pytest.fixture
def any_client(request: pytest.FixtureRequest) -> Client:
    """A client over HTTPS or, where the test is in virtual time, of a cluster there."""
    name = "virtual_client" if in_virtual_time(request) else "client"
    return cast("Client", request.getfixturevalue(name))


@pytest.fixture
def any_namespace(request: pytest.FixtureRequest) -> str:
    """A namespace where that client may work."""
    if in_virtual_time(request):
        return "default"
    return cast("str", request.getfixturevalue("namespace"))
