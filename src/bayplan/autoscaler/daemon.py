"""The autoscaler as a daemon: what it does while it leads.

`lead` is a coroutine function of one client, as every daemon's is; which cluster, cloud, clock and
process it is in it cannot tell.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from prometheus_client import CollectorRegistry

from bayplan.autoscaler.actuation.cleanup import FailedInstanceCleanup, LateNodeCleanup
from bayplan.autoscaler.actuation.node_removal import (
    NodeRemoval,
    NodeRemovalContext,
    start_node_removal,
)
from bayplan.autoscaler.actuation.scale_up import ActuationContext
from bayplan.autoscaler.cloudstate.reader import CloudReader, Expects, as_it_is, gpu_label
from bayplan.autoscaler.clusterview import ClusterViewBuilder, KnownObjects
from bayplan.autoscaler.events import AutoscalerEvents
from bayplan.autoscaler.expanders import CONFIG_MAP, parse_expanders
from bayplan.autoscaler.expanders.chain import ExpanderFactory
from bayplan.autoscaler.loop import Loop, LoopParts
from bayplan.autoscaler.metrics import AutoscalerMetrics, ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import Plan
from bayplan.autoscaler.providers.dry_run import DryRunProvider, Show
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.status.configmap import StatusWriter
from bayplan.autoscaler.status.gauges import Gauges
from bayplan.autoscaler.status.report import StatusReport
from bayplan.base.grace import finish_within
from bayplan.client import Client, Informer, Recorder, Reporter, Selection, Untyped
from bayplan.client.events import NoEvents, Notes
from bayplan.client.resources import CONFIG_MAPS
from bayplan.fit import Profile
from bayplan.fit.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver, StorageClass
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.nodegroups import NodeGroupError, Provider
from bayplan.observe import LimitCollector, LimitWatch, LiveSnapshot, follow

log = logging.getLogger(__name__)
NAME = "cluster-autoscaler"
"""Who events are from: whoever looks for them looks for this."""
GRACE = 4.0
"""Seconds to write what was said when the autoscaler is told to stop."""
OpenCloud = Callable[[Client], AbstractAsyncContextManager[Provider]]


class AutoscalerDaemon:
    """An autoscaler that can be started on any client and cloud."""

    def __init__(  # noqa: PLR0913 - most have their defaults
        self,
        cloud: OpenCloud,
        options: AutoscalerOptions | None = None,
        *,
        profile: Profile | None = None,
        registry: CollectorRegistry | None = None,
        instance: str = "bayplan",
        show: Show | None = None,
        expects: Expects = as_it_is,
    ) -> None:
        self._cloud = cloud
        self._expects = expects
        self._options = options or AutoscalerOptions()
        self._expanders = parse_expanders(self._options.expander)
        self._profile = profile or Profile()
        registry = registry or CollectorRegistry()
        registry.register(LimitCollector("bayplan_autoscaler", lambda: self._limits))
        self._metrics = AutoscalerMetrics(registry)
        self._scale_down = ScaleDownMetrics(registry)
        self._instance = instance
        self._show = show
        """Where a dry run shows what it would do; None if it is none."""
        self.loop: Loop | None = None
        """The loop at work, while it leads."""
        self._limits: LimitWatch | None = None
        self.is_starting = False
        """Whether it leads, and has not the whole picture yet."""
        self.ready = asyncio.Event()
        """Set while it has."""

    def plans(self) -> tuple[Plan, ...]:
        """What the last loops decided, the newest last."""
        return tuple(self.loop.plans) if self.loop is not None else ()

    async def lead(self, client: Client) -> None:
        """Buy and give back until cancelled."""
        log.info("leads")
        self.is_starting = True
        notes = self._notes(client)
        # The cloud first: whoever waits for it must not miss what the cluster says meanwhile.
        async with self._cloud(client) as provider, follow(client, profile=self._profile) as live:
            speaking = asyncio.ensure_future(notes.run())
            try:
                self.loop = await self._begin(client, live, self._shown(provider), notes)
                self.is_starting = False
                self.ready.set()
                await self.loop.run()
            finally:
                self.is_starting = False
                self.ready.clear()
                await _finish(notes, provider)
                speaking.cancel()
                if self.loop is not None:
                    await self.loop.close()
                self.loop = self._limits = None

    async def _begin(
        self, client: Client, live: LiveSnapshot, provider: Provider, notes: Notes
    ) -> Loop:
        options, clock, snapshot = self._options, client.clock, live.snapshot
        daemon_sets = live.informers.of(DaemonSet)
        drivers, classes = live.copy_of(CSIDriver), live.copy_of(StorageClass)
        builder = ClusterViewBuilder(
            snapshot, KnownObjects(daemon_sets.objects, drivers, classes), options
        )
        live.observer.listen(builder.hear)
        await live.synced()
        # The scheduler writes events of what is wrong with limits; here it is logged and counted.
        self._limits = LimitWatch(snapshot, _warn_of_node)
        self._limits.start(live.observer)
        await daemon_sets.synced.wait()
        builder.templates.gpu_label = await gpu_label(provider)
        daemon_sets.on_change(lambda _: builder.daemons_changed())
        recorder = AutoscalerEvents(notes, options, clock)
        context = ActuationContext(
            provider, builder.registry, builder.backoff, recorder, self._metrics, clock
        )
        gauges = Gauges(self._metrics, builder.node_states, snapshot)
        statuses = StatusWriter(self._profile.gates)
        writer = client if self._show is None else None
        node_removal = await self._node_removal(client, live, provider, recorder)
        going = node_removal.actuator.deletions
        parts = LoopParts(
            reader=CloudReader(provider, options.group_defaults(), clock, self._expects),
            builder=builder,
            context=context,
            instance_cleanup=FailedInstanceCleanup(context, options),
            node_cleanup=LateNodeCleanup(
                context, options, builder.node_states, writer, snapshot.pods_on
            ),
            expander_factory=ExpanderFactory(
                self._expanders, provider, snapshot, client.rng, self._priorities(live).objects
            ),
            node_removal=node_removal,
            report=StatusReport(writer, options, builder, gauges, recorder, statuses, going),
        )
        return Loop(parts, options, clock)

    def _notes(self, client: Client) -> Notes:
        if self._show is not None:
            return NoEvents()
        return Recorder(client, Reporter(NAME, self._instance), apart_by_text=True)

    def _shown(self, provider: Provider) -> Provider:
        return provider if self._show is None else DryRunProvider(provider, self._show)

    async def _node_removal(
        self, client: Client, live: LiveSnapshot, provider: Provider, recorder: AutoscalerEvents
    ) -> NodeRemoval:
        jobs, daemon_sets = live.informers.of(Job), live.informers.of(DaemonSet)
        await jobs.synced.wait()
        given = NodeRemovalContext(
            client=client,
            provider=provider,
            controllers=Controllers(live.snapshot, jobs.objects, daemon_sets.objects),
            options=self._options,
            recorder=recorder,
            metrics=self._scale_down,
        )
        node_removal = await start_node_removal(given, acts=self._show is None)
        for pod in live.copy_of(Pod).values():
            node_removal.expendables.hear(Event.of(None, pod))
        live.observer.listen(node_removal.expendables.hear)
        return node_removal

    def _priorities(self, live: LiveSnapshot) -> Informer[Untyped]:
        """The ConfigMap of the priority expander, whether or not there is one."""
        which = Selection(self._options.namespace, fields=f"metadata.name={CONFIG_MAP}")
        return live.informers.of(CONFIG_MAPS, which)


def _warn_of_node(node: Node, _reason: str, text: str) -> None:
    log.warning("node %s: %s", node.name, text, extra={"node": node.name})


async def _finish(notes: Notes, provider: Provider) -> None:
    """Let what was said be written, and the cloud tidy up, if that does not take long."""
    with contextlib.suppress(NodeGroupError):
        await finish_within(GRACE, _tidy_up(notes, provider))


async def _tidy_up(notes: Notes, provider: Provider) -> None:
    await notes.drain()
    await provider.cleanup()
