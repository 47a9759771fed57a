"""A live snapshot follows a cluster, and a comparer says whether it does."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.client import Client, Untyped, deletion, merge
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import Namespace
from bayplan.observe import LiveSnapshot, compare, follow
from tests.client.conftest import ensure

NODE = "bayplan-observe-test"


class EventLog:
    """Events as they come, to wait for."""

    def __init__(self, live: LiveSnapshot) -> None:
        self.events: list[ClusterEvent] = []
        self._news = asyncio.Event()
        live.observer.listen(self._take)

    def _take(self, event: ClusterEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, action: str, key: str) -> ClusterEvent:
        while True:
            for event in self.events:
                about = event.after or event.before
                if about is not None and (event.action, about.key) == (action, key):
                    return event
            self._news.clear()
            await self._news.wait()


@pytest.fixture
async def node(client: Client) -> str:
    made: Untyped = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    await ensure(client, made)
    return NODE


def pod(namespace: str, name: str, **spec: object) -> Untyped:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


async def test_a_live_snapshot_starts_whole_and_then_follows(
    client: Client, namespace: str, node: str
) -> None:
    await client.create(pod(namespace, "early"))
    async with follow(client) as live:
        assert not live.is_synced
        heard = EventLog(live)
        await live.synced()
        assert live.snapshot.get(Node, node) is not None
        assert live.snapshot.get(Pod, f"{namespace}/early") is not None
        await client.create(pod(namespace, "late"))
        await heard.until("added", f"{namespace}/late")
        assert live.snapshot.get(Pod, f"{namespace}/late") is not None
        await client.patch(Node, node, change=merge({"metadata": {"labels": {"zone": "a"}}}))
        event = await heard.until("updated", node)
        assert isinstance(event.after, Node)
        await client.delete(Pod, namespace, "late")
        await heard.until("deleted", f"{namespace}/late")
        assert live.snapshot.get(Pod, f"{namespace}/late") is None


async def _churn(client: Client, namespace: str, names: list[str], until: LiveSnapshot) -> None:
    """Let pods change, go and come, until somebody has the whole picture."""
    number = 0
    while not until.is_synced:
        name = names[number % len(names)]
        labels = {"metadata": {"labels": {"round": str(number)}}}
        if number % 3:
            await client.patch(Pod, namespace, name, change=merge(labels))
        else:
            await client.delete(Pod, namespace, name, options=deletion(grace=0))
            await client.create(pod(namespace, name))
        number += 1


async def test_what_happens_while_a_snapshot_is_filled_is_neither_lost_nor_told_twice(
    client: Client, namespace: str, node: str
) -> None:
    names = [f"p{number}" for number in range(40)]
    for name in names:
        await client.create(pod(namespace, name))
    # A turn that is over at once: after each object, everybody else has theirs.
    async with follow(client, kinds=(Namespace, Node, Pod), turn=0.0) as live:
        heard = EventLog(live)
        await asyncio.gather(live.synced(), _churn(client, namespace, names, live))
        await client.create(pod(namespace, "last"))
        await heard.until("added", f"{namespace}/last")
        assert (await compare(live, client)).equal
        known: dict[tuple[type, str], KubeObject] = {}
        for event in heard.events:
            assert event.before is known.pop((event.kind, event.key), None)
            if event.after is not None:
                known[event.kind, event.key] = event.after
        assert len([kind for kind, _ in known if kind is Pod]) == len(live.cached(Pod))


async def test_a_pod_that_ends_is_gone(client: Client, namespace: str, node: str) -> None:
    await client.create(pod(namespace, "job"))
    async with follow(client) as live:
        heard = EventLog(live)
        await live.synced()
        ended = merge({"status": {"phase": "Succeeded"}})
        await client.patch(Pod, namespace, "job", change=ended, subresource="status")
        await heard.until("deleted", f"{namespace}/job")
        assert live.snapshot.get(Pod, f"{namespace}/job") is None


async def test_the_informers_copies_and_the_snapshot_share_their_objects(
    client: Client, namespace: str
) -> None:
    await client.create(pod(namespace, "p"))
    async with follow(client) as live:
        await live.synced()
        pods = next(one for one in live.followed if one.resource.type is Pod)
        key = f"{namespace}/p"
        assert live.snapshot.get(Pod, key) is pods.objects[key]


async def test_a_comparison_finds_what_is_held_wrongly_and_nothing_else(
    client: Client, namespace: str, node: str
) -> None:
    for name in ("kept", "lost", "twisted"):
        await client.create(pod(namespace, name))
    async with follow(client, kinds=(Namespace, Node, Pod)) as live:
        await live.synced()
        assert (await compare(live, client)).equal
        live.snapshot.delete(Pod, f"{namespace}/lost")
        twisted = live.snapshot.get(Pod, f"{namespace}/twisted")
        assert isinstance(twisted, Pod)
        twisted.spec.containers[0].image = "another"
        await client.create(pod(namespace, "new"))
        found = await compare(live, client)
        assert [str(one) for one in found.differences] == [
            f"Pod {namespace}/lost: is not in the snapshot",
            f"Pod {namespace}/twisted: the same version, but other contents",
        ]
