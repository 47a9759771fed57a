"""The cluster under test: an embedded one of the test's own, or whatever KUBECONFIG_E2E names."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from bayplan.client import Access, Client, Untyped
from bayplan.client.config import from_kubeconfig
from bayplan.client.errors import AlreadyExistsError
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.workloads import Namespace


@pytest.fixture
async def access(tmp_path: Path) -> AsyncIterator[Access]:
    """How to reach a cluster in which we may do everything, perhaps not alone."""
    if named := os.environ.get("KUBECONFIG_E2E"):
        yield from_kubeconfig([Path(named)])
        return
    kubeconfig = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=kubeconfig)):
        yield from_kubeconfig([kubeconfig])


@pytest.fixture
async def client(access: Access) -> AsyncIterator[Client]:
    """A client of that cluster."""
    async with Client(access) as made:
        yield made


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A namespace of the test's own, gone afterwards."""
    made = await client.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "bayplan-"}}
    )
    name = str(meta(made)["name"])
    account: Untyped = {"metadata": {"namespace": name, "name": "default"}}
    await ensure(client, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
    yield name
    await client.delete(Namespace, name)


async def ensure(client: Client, item: Untyped) -> None:
    """Make an object that somebody else may make at the same time."""
    with suppress(AlreadyExistsError):
        await client.create(item)


def meta(item: Untyped) -> Untyped:
    """An object's metadata."""
    found = item["metadata"]
    assert isinstance(found, dict)
    return found
