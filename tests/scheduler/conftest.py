"""The cluster under test: an embedded one of the test's own, or whatever KUBECONFIG_E2E names.

A plain API server without controllers is enough, and it must have no nodes but those of the tests.
There nobody takes away what a test made: no kubelet ends pods, no controller empties namespaces or
lets go of claims. So each test does that for itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from bayplan.client import Client, deletion, merge
from bayplan.client.errors import NotFoundError
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from tests.client.conftest import access, namespace
from tests.client.conftest import client as plain_client

__all__ = ["access", "client", "namespace", "plain_client"]
PREFIX = "bayplan"
EVERYWHERE = (Pod, PersistentVolumeClaim, PodGroup)
OF_THE_CLUSTER = (Node, CSINode, CSIDriver, StorageClass, PriorityClass, PersistentVolume, Queue)
WITH_FINALIZERS = (PersistentVolume, PersistentVolumeClaim)


@pytest.fixture
async def client(plain_client: Client) -> AsyncIterator[Client]:
    """A client of that cluster; what a test makes in it is gone afterwards."""
    before = {key for _, key in await _ours(plain_client)}
    yield plain_client
    for kind, key in await _ours(plain_client):
        if key not in before:
            await _remove(plain_client, kind, key)


async def _ours(client: Client) -> list[tuple[type[KubeObject], tuple[str, ...]]]:
    """What may be of a test's making: all in its namespaces, and what has its names."""
    return [
        (kind, (item.namespace, item.name) if kind in EVERYWHERE else (item.name,))
        for kind in (*EVERYWHERE, *OF_THE_CLUSTER)
        for item in await _all(client, kind)
        if (item.namespace if kind in EVERYWHERE else item.name).startswith(PREFIX)
    ]


async def _all(client: Client, kind: type[KubeObject]) -> list[KubeObject]:
    """All objects of a kind; none if the cluster does not have it."""
    try:
        return (await client.list(kind)).items
    except NotFoundError:
        return []


async def _remove(client: Client, kind: type[KubeObject], key: tuple[str, ...]) -> None:
    with suppress(NotFoundError):
        if kind in WITH_FINALIZERS:
            free = merge({"metadata": {"finalizers": None}})
            await client.patch(kind, *key, change=free)
        await client.delete(kind, *key, options=deletion(grace=0))
