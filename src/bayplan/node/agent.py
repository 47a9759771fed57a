"""The agent of attach limits as a daemon: for one node, or for all of them.

`lead` is a coroutine function of one client, as every daemon's is. It follows nodes and CSINodes,
and whenever one has changed works out what is to be published and writes the difference: one patch
of the node's status, and if that is wanted one of the CSINode. A change that fails is tried again
later, each time a little later, unless something else is wanted meanwhile. Nothing that goes wrong
with one node keeps another waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from prometheus_client import CollectorRegistry

from bayplan.client import Change, Client, Informers, Recorder, Reporter, Selection
from bayplan.client.events import Notes
from bayplan.client.informers import Informer
from bayplan.kube.attachlimits import PUBLISHED
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.node.decision import Settings, wanted
from bayplan.node.metrics import LimitMetrics
from bayplan.node.writes import Page, Writer

log = logging.getLogger(__name__)
NAME = "bayplan-node-limits"
"""The lease, and who events are from."""
AT_ONCE = 16
"""Nodes that are written to at the same time."""
LOOK_AGAIN = 60.0
"""Seconds after which settings are asked for again, in case they have changed."""
SettingsSource = Callable[[], Settings]


class LimitsAgent:
    """Publishes attach limits, on any client."""

    def __init__(
        self,
        settings: SettingsSource,
        *,
        node: str = "",
        registry: CollectorRegistry | None = None,
        instance: str = "bayplan",
    ) -> None:
        self._source = settings
        self._settings = settings()
        self._node = node
        """The one node; empty for all."""
        self._metrics = LimitMetrics(registry or CollectorRegistry())
        self._instance = instance
        self._dirty: set[str] = set()
        """The nodes to look at."""
        self._heard_of: set[str] = set()
        """Those of which there is news since the last look."""
        self._busy: set[str] = set()
        """Those that are being written to."""
        self._news = asyncio.Event()
        self._pages: dict[str, Page] = {}
        self.ready = asyncio.Event()
        """Set while every node that is known has been looked at."""
        self.is_starting = False
        """Whether it leads, and has not looked at every node yet."""
        self._now: Callable[[], float] = lambda: 0.0
        self._read_when_asked()

    async def lead(self, client: Client) -> None:
        """Publish until cancelled."""
        whom = f"node {self._node}" if self._node else "all nodes"
        log.info("publishes the attach limits of %s", whom)
        self.is_starting = True
        which = Selection(fields=f"metadata.name={self._node}") if self._node else None
        self._now = client.clock.monotonic
        notes = Recorder(client, Reporter(NAME, self._instance), apart_by_text=True)
        speaking = asyncio.ensure_future(notes.run())
        try:
            async with Informers(client) as informers:
                nodes, csinodes = informers.of(Node, which), informers.of(CSINode, which)
                nodes.on_change(self._heard)
                csinodes.on_change(self._heard)
                await informers.synced()
                await self._work(client, nodes, csinodes, notes)
        finally:
            self.is_starting = False
            self.ready.clear()
            self._pages.clear()
            speaking.cancel()

    def _heard(self, change: Change[Node] | Change[CSINode]) -> None:
        if _matters(change):
            self._hear([change.key])

    def _hear(self, names: Collection[str]) -> None:
        self._heard_of.update(names)
        self._dirty.update(names)
        self._news.set()

    async def _work(
        self,
        client: Client,
        nodes: Informer[Node],
        csinodes: Informer[CSINode],
        notes: Notes,
    ) -> None:
        writer = Writer(client, self._metrics, notes)
        turns = asyncio.Semaphore(AT_ONCE)
        self._hear(nodes.objects)

        async def see(name: str) -> None:
            try:
                async with turns:
                    await self._see(writer, nodes, csinodes, name)
            finally:
                self._busy.discard(name)
                self._news.set()

        async with asyncio.TaskGroup() as tasks:
            while True:
                self._look_again(nodes)
                for name in self._take_due(nodes, csinodes, client.clock.monotonic()):
                    self._busy.add(name)
                    tasks.create_task(see(name))
                if not self._busy:
                    self.is_starting = False
                    self.ready.set()
                await self._wait(client)

    def _look_again(self, nodes: Informer[Node]) -> None:
        settings = self._source()
        if settings != self._settings:
            log.info("the settings have changed")
            self._settings = settings
            self._hear(nodes.objects)

    def _take_due(
        self, nodes: Informer[Node], csinodes: Informer[CSINode], now: float
    ) -> list[str]:
        """The nodes to look at now; others that have changed stay for later."""
        free = self._dirty - self._busy
        held = {name for name in free if self._due(name) > now}
        news = held & self._heard_of
        held -= {name for name in news if self._asks_anew(nodes, csinodes, name)}
        self._heard_of &= self._busy
        self._dirty -= free - held
        return sorted(free - held)

    def _asks_anew(self, nodes: Informer[Node], csinodes: Informer[CSINode], name: str) -> bool:
        """Whether something else is wanted of a node than what was tried last: that is no reason to
        wait, whatever became of the last try.
        """
        node, page = nodes.objects.get(name), self._pages[name]
        if node is None or node.metadata.uid != page.uid:
            return True
        return wanted(node, csinodes.objects.get(name), self._settings) != page.tried

    def _due(self, name: str) -> float:
        page = self._pages.get(name)
        return page.due if page is not None else 0.0

    async def _see(
        self, writer: Writer, nodes: Informer[Node], csinodes: Informer[CSINode], name: str
    ) -> None:
        node, page = nodes.objects.get(name), self._pages.get(name)
        if node is None:
            self._pages.pop(name, None)
            return
        if page is None or page.uid != node.metadata.uid:
            page = self._pages[name] = Page.new(writer.client.rng, node.metadata.uid)
        if not await writer.bring(node, csinodes.objects.get(name), self._settings, page):
            self._dirty.add(name)

    def _read_when_asked(self) -> None:
        """Have the gauges read what there is when somebody looks."""
        metrics, pages = self._metrics, self._pages
        metrics.nodes.set_function(lambda: len(pages))
        metrics.keys.set_function(lambda: sum(len(one.said.keys) for one in pages.values()))
        metrics.unknown.set_function(lambda: sum(bool(p.said.guesses) for p in pages.values()))
        metrics.unreadable.set_function(lambda: sum(one.unreadable for one in pages.values()))
        metrics.waiting.set_function(lambda: sum(one.is_waiting for one in pages.values()))
        metrics.contested.set_function(
            lambda: sum(one.is_contested(self._now()) for one in pages.values())
        )

    async def _wait(self, client: Client) -> None:
        """Until there is news, a node is due again, or the settings may have changed."""
        now = client.clock.monotonic()
        free = self._dirty - self._busy
        wait = min((self._due(one) - now for one in free), default=LOOK_AGAIN)
        self._news.clear()
        if free and wait <= 0:
            return
        sleeping = asyncio.ensure_future(client.clock.sleep(min(wait, LOOK_AGAIN)))
        hearing = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait({sleeping, hearing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            hearing.cancel()


def _matters(change: Change[Node] | Change[CSINode]) -> bool:
    """Whether it may change what is to be published; a heartbeat does not."""
    old, new = change.old, change.new
    if not (isinstance(old, Node) and isinstance(new, Node)):
        return True
    return _seen(old) != _seen(new)


def _seen(node: Node) -> tuple[object, ...]:
    meta, status = node.metadata, node.status
    return (
        meta.uid,
        meta.labels,
        meta.annotations.get(PUBLISHED),
        node.spec.provider_id,
        status.capacity,
        status.allocatable,
    )
