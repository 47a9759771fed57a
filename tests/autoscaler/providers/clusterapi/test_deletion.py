"""Deletions survive crashes between their writes, outages of Cluster API, and repetition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from random import Random

import pytest

from bayplan.base.clock import LoopClock
from bayplan.client import Access, Client, merge
from bayplan.client.errors import DisconnectedError, UnreachableError
from bayplan.client.wire.transport import Headers, Request, Transport, TransportResponse
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.inprocess import InProcessTransport, in_process_client
from bayplan.nodegroups import NodeGroupError, Provider
from tests.autoscaler.providers.clusterapi.capi import DELETE, NAMESPACE, Capi
from tests.autoscaler.providers.clusterapi.providers import node, opened, seen

pytestmark = pytest.mark.virtual

WORKERS = "MachineDeployment/default/workers"
OURS = "bayplan.io/deletion-replicas"


class MortalWire:
    """A transport of a process that dies after so many writes: nothing is sent any more."""

    def __init__(self, inner: Transport, writes: int) -> None:
        self._inner = inner
        self._left = writes

    def open(
        self, request: Request, headers: Headers
    ) -> AbstractAsyncContextManager[TransportResponse]:
        return self._open(request, headers)

    async def close(self) -> None:
        await self._inner.close()

    @asynccontextmanager
    async def _open(self, request: Request, headers: Headers) -> AsyncIterator[TransportResponse]:
        if self._left < 0 or (request.method == "PATCH" and self._left == 0):
            self._left = -1
            raise UnreachableError(f"{request}: the process is gone")
        async with self._inner.open(request, headers) as reply:
            self._left -= request.method == "PATCH"
            if self._left == 0 and request.method == "PATCH":
                self._left = -1
                raise DisconnectedError(f"{request}: the process is gone")
            yield reply


class Place:
    """A management cluster with five workers, and autoscalers that come and go."""

    def __init__(self, plane: ControlPlane, capi: Capi, clock: LoopClock) -> None:
        self.plane = plane
        self.capi = capi
        self.clock = clock

    @asynccontextmanager
    async def autoscaler(self, writes: int = 10**6) -> AsyncIterator[Provider]:
        """A provider of a process that dies after so many writes."""
        wire = MortalWire(InProcessTransport(self.plane, ADMIN), writes)
        access = Access("https://in.process")
        async with (
            Client(access, transport=wire, clock=self.clock, rng=Random(1)) as client,
            opened(Capi(client)) as provider,
        ):
            yield provider

    async def replicas(self) -> int:
        return await self.capi.replicas("MachineDeployment", "workers")

    async def marked(self) -> list[str]:
        machines = await self.capi.machines()
        return sorted(
            name for name, one in machines.items() if DELETE in one["metadata"]["annotations"]
        )


@asynccontextmanager
async def place(size: int = 5) -> AsyncIterator[Place]:
    clock = LoopClock()
    plane = ControlPlane(PlaneConfig(clock=clock, rng=Random(1)))
    await plane.start()
    async with in_process_client(plane, rng=Random(1)) as client:
        capi = Capi(client)
        await capi.install()
        await capi.make("MachineDeployment", "workers", size)
        await capi.settle()
        for name in await capi.machines():
            change = merge({"metadata": {"annotations": {"example.com/x": ""}}})
            await client.patch(capi.of("Machine"), NAMESPACE, name, change=change)
        yield Place(plane, capi, clock)
    await plane.stop()


async def test_a_bad_node_takes_one_replica_while_cluster_api_is_down() -> None:
    """Deleted in every loop and after every restart, the group goes from 5 to 4 and no further."""
    async with place() as made:
        for _ in range(3):
            async with made.autoscaler() as provider:
                for _ in range(3):
                    await provider.delete_nodes(WORKERS, [node("workers-1-2")])
                    assert await made.replicas() == 4
                states = sorted(one.state.value for one in await provider.instances(WORKERS))
                assert states == ["deleting", *["running"] * 4]
                assert await provider.target_size(WORKERS) == 4
        await made.capi.settle()
        assert "workers-1-2" not in await made.capi.machines()
        assert len(await made.capi.machines()) == 4


@pytest.mark.parametrize("writes", range(5))
async def test_a_deletion_is_completed_after_a_crash_at_any_write(writes: int) -> None:
    """Writes are two marks and the size; a crash is after none, each, and all of them."""
    going = ["workers-1-2", "workers-1-4"]
    async with place() as made:
        async with made.autoscaler(writes) as provider:
            with suppress(NodeGroupError):
                await provider.delete_nodes(WORKERS, [node(one) for one in going])
        assert await made.replicas() == (5 if writes < 3 else 3)
        async with made.autoscaler() as provider:
            states = [one.state.value for one in await provider.instances(WORKERS)]
            assert states.count("deleting") == (0 if writes < 3 else 2)
            for _ in range(2):
                await provider.delete_nodes(WORKERS, [node(one) for one in going])
            assert await made.replicas() == 3
        await made.capi.settle()
        assert sorted(await made.capi.machines()) == ["workers-1-1", "workers-1-3", "workers-1-5"]


@pytest.mark.parametrize("writes", [1, 2])
async def test_a_mark_without_its_replica_is_taken_back_for_another_deletion(writes: int) -> None:
    async with place() as made:
        async with made.autoscaler(writes) as provider:
            with suppress(NodeGroupError):
                await provider.delete_nodes(WORKERS, [node("workers-1-2"), node("workers-1-4")])
        assert len(await made.marked()) == writes
        async with made.autoscaler() as provider:
            await provider.delete_nodes(WORKERS, [node("workers-1-5")])
            assert await made.marked() == ["workers-1-5"]
        await made.capi.settle()
        assert sorted(await made.capi.machines()) == [f"workers-1-{n}" for n in (1, 2, 3, 4)]


async def test_deletions_add_up_while_cluster_api_is_down() -> None:
    async with place() as made, made.autoscaler() as provider:
        await provider.delete_nodes(WORKERS, [node("workers-1-1")])
        await provider.delete_nodes(WORKERS, [node("workers-1-1"), node("workers-1-3")])
        assert await made.replicas() == 3
        await seen(provider, WORKERS, states=["deleting"] * 2 + ["running"] * 3)
        await made.capi.settle()
        assert sorted(await made.capi.machines()) == [f"workers-1-{n}" for n in (2, 4, 5)]


async def test_a_mark_of_another_client_is_no_deletion_and_is_kept() -> None:
    async with place() as made:
        change = merge({"metadata": {"annotations": {DELETE: "by hand"}}})
        await made.capi.client.patch(
            made.capi.of("Machine"), NAMESPACE, "workers-1-2", change=change
        )
        async with made.autoscaler() as provider:
            await seen(provider, WORKERS, states=["running"] * 5)
            await provider.delete_nodes(WORKERS, [node("workers-1-2")])
            assert await made.replicas() == 4
            await provider.delete_nodes(WORKERS, [node("workers-1-2")])
            assert await made.replicas() == 4
        await made.capi.settle()
        assert "workers-1-2" not in await made.capi.machines()


async def test_a_deletion_that_a_scale_up_undid_can_be_repeated() -> None:
    """Cluster API keeps a marked machine if the replicas rise before it has deleted it."""
    async with place() as made, made.autoscaler() as provider:
        await provider.delete_nodes(WORKERS, [node("workers-1-2")])
        await made.capi.client.scale(
            made.capi.of("MachineDeployment"), NAMESPACE, "workers", replicas=5
        )
        await seen(provider, WORKERS, target=5, states=["running"] * 5)
        await provider.delete_nodes(WORKERS, [node("workers-1-2")])
        assert await made.replicas() == 4
        machines = await made.capi.machines()
        assert machines["workers-1-2"]["metadata"]["annotations"][OURS] == "4"
