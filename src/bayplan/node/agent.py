"""The attach limit agent, a daemon for one node or for all nodes.

It watches nodes and CSINodes. When one has changed it computes the desired limits and writes the
difference: one patch of the node's status, and if enabled one of the CSINode. A failed patch is
retried with back-off, or at once if other limits are desired meanwhile. A failure of one node does
not delay another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from prometheus_client import CollectorRegistry

from bayplan.client import ApiEventRecorder, Change, Client, EventReporter, Informers, Selection
from bayplan.client.events import EventRecorder
from bayplan.client.informers import Informer
from bayplan.kube.attachlimits import PUBLISHED_LIMITS
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.node.decision import AttachLimitSettings, desired_limits
from bayplan.node.metrics import LimitMetrics
from bayplan.node.writer import LimitWriter, LimitWriteState

log = logging.getLogger(__name__)
NAME = "bayplan-node-limits"
"""The name of the lease, and the controller of events."""
MAX_CONCURRENT_WRITES = 16
"""The most nodes that are written at the same time."""
SETTINGS_PERIOD = 60.0
"""Seconds between two checks for changed settings."""
SettingsSource = Callable[[], AttachLimitSettings]


class LimitsAgent:
    """Publishes the attach limits of nodes."""

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
        """The node's name; empty for all nodes."""
        self._metrics = LimitMetrics(registry or CollectorRegistry())
        self._instance = instance
        self._dirty: set[str] = set()
        """The nodes to reconcile."""
        self._changed: set[str] = set()
        """The nodes that have changed since they were last reconciled."""
        self._busy: set[str] = set()
        """The nodes that are being written."""
        self._wake = asyncio.Event()
        self._states: dict[str, LimitWriteState] = {}
        self.ready = asyncio.Event()
        """Set once every known node has been reconciled."""
        self.is_starting = False
        """Whether it leads, and has not reconciled every node yet."""
        self._now: Callable[[], float] = lambda: 0.0
        self._set_gauge_functions()

    async def lead(self, client: Client) -> None:
        """Publish until cancelled."""
        target = f"node {self._node}" if self._node else "all nodes"
        log.info("publishing attach limits of %s", target)
        self.is_starting = True
        selection = Selection(fields=f"metadata.name={self._node}") if self._node else None
        self._now = client.clock.monotonic
        recorder = ApiEventRecorder(
            client, EventReporter(NAME, self._instance), distinguish_by_note=True
        )
        sending = asyncio.ensure_future(recorder.run())
        try:
            async with Informers(client) as informers:
                nodes, csinodes = informers.of(Node, selection), informers.of(CSINode, selection)
                nodes.on_change(self._on_change)
                csinodes.on_change(self._on_change)
                await informers.synced()
                await self._work(client, nodes, csinodes, recorder)
        finally:
            self.is_starting = False
            self.ready.clear()
            self._states.clear()
            sending.cancel()

    def _on_change(self, change: Change[Node] | Change[CSINode]) -> None:
        if _is_relevant(change):
            self._mark_changed([change.key])

    def _mark_changed(self, names: Collection[str]) -> None:
        self._changed.update(names)
        self._dirty.update(names)
        self._wake.set()

    async def _work(
        self,
        client: Client,
        nodes: Informer[Node],
        csinodes: Informer[CSINode],
        recorder: EventRecorder,
    ) -> None:
        writer = LimitWriter(client, self._metrics, recorder)
        slots = asyncio.Semaphore(MAX_CONCURRENT_WRITES)
        self._mark_changed(nodes.objects)

        async def reconcile(name: str) -> None:
            try:
                async with slots:
                    await self._reconcile(writer, nodes, csinodes, name)
            finally:
                self._busy.discard(name)
                self._wake.set()

        async with asyncio.TaskGroup() as tasks:
            while True:
                self._reload_settings(nodes)
                for name in self._take_due(nodes, csinodes, client.clock.monotonic()):
                    self._busy.add(name)
                    tasks.create_task(reconcile(name))
                if not self._busy:
                    self.is_starting = False
                    self.ready.set()
                await self._wait(client)

    def _reload_settings(self, nodes: Informer[Node]) -> None:
        settings = self._source()
        if settings != self._settings:
            log.info("attach limit settings have changed")
            self._settings = settings
            self._mark_changed(nodes.objects)

    def _take_due(
        self, nodes: Informer[Node], csinodes: Informer[CSINode], now: float
    ) -> list[str]:
        """Return the nodes to reconcile now; those in back-off stay for later."""
        free = self._dirty - self._busy
        waiting = {name for name in free if self._due(name) > now}
        changed = waiting & self._changed
        waiting -= {name for name in changed if self._has_new_desired_limits(nodes, csinodes, name)}
        self._changed &= self._busy
        self._dirty -= free - waiting
        return sorted(free - waiting)

    def _has_new_desired_limits(
        self, nodes: Informer[Node], csinodes: Informer[CSINode], name: str
    ) -> bool:
        """Whether other limits are desired than at the last attempt; then there is no back-off."""
        node, state = nodes.objects.get(name), self._states[name]
        if node is None or node.metadata.uid != state.uid:
            return True
        return desired_limits(node, csinodes.objects.get(name), self._settings) != state.tried

    def _due(self, name: str) -> float:
        state = self._states.get(name)
        return state.due if state is not None else 0.0

    async def _reconcile(
        self, writer: LimitWriter, nodes: Informer[Node], csinodes: Informer[CSINode], name: str
    ) -> None:
        node, state = nodes.objects.get(name), self._states.get(name)
        if node is None:
            self._states.pop(name, None)
            return
        if state is None or state.uid != node.metadata.uid:
            state = self._states[name] = LimitWriteState.new(writer.client.rng, node.metadata.uid)
        if not await writer.apply(node, csinodes.objects.get(name), self._settings, state):
            self._dirty.add(name)

    def _set_gauge_functions(self) -> None:
        """Let the gauges read the present state at every scrape."""
        metrics, states = self._metrics, self._states
        metrics.nodes.set_function(lambda: len(states))
        metrics.keys.set_function(lambda: sum(len(one.published.keys) for one in states.values()))
        metrics.unknown.set_function(
            lambda: sum(bool(p.published.guesses) for p in states.values())
        )
        metrics.unreadable.set_function(lambda: sum(one.unreadable for one in states.values()))
        metrics.waiting.set_function(lambda: sum(one.is_waiting for one in states.values()))
        metrics.contested.set_function(
            lambda: sum(one.is_contested(self._now()) for one in states.values())
        )

    async def _wait(self, client: Client) -> None:
        """Wait until a node has changed or is due again, or the settings may have changed."""
        now = client.clock.monotonic()
        free = self._dirty - self._busy
        wait = min((self._due(one) - now for one in free), default=SETTINGS_PERIOD)
        self._wake.clear()
        if free and wait <= 0:
            return
        sleeping = asyncio.ensure_future(client.clock.sleep(min(wait, SETTINGS_PERIOD)))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()


def _is_relevant(change: Change[Node] | Change[CSINode]) -> bool:
    """Whether a change may affect the desired limits; a heartbeat does not."""
    old, new = change.old, change.new
    if not (isinstance(old, Node) and isinstance(new, Node)):
        return True
    return _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(node: Node) -> tuple[object, ...]:
    meta, status = node.metadata, node.status
    return (
        meta.uid,
        meta.labels,
        meta.annotations.get(PUBLISHED_LIMITS),
        node.spec.provider_id,
        status.capacity,
        status.allocatable,
    )
