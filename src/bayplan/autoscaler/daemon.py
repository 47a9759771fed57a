"""The autoscaler as a daemon, while it is leader.

`lead` is a coroutine function of one client, as every daemon's is; it does not depend on the
cluster, cloud, clock or process that it runs in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from prometheus_client import CollectorRegistry

from bayplan.autoscaler.actuation.cleanup import FailedInstanceCleanup
from bayplan.autoscaler.actuation.missing_drivers import MissingDriverCleanup
from bayplan.autoscaler.actuation.node_removal import (
    NodeRemoval,
    NodeRemovalContext,
    start_node_removal,
)
from bayplan.autoscaler.actuation.removal_ledger import RemovalLedger
from bayplan.autoscaler.actuation.scale_up import ActuationContext
from bayplan.autoscaler.cloudstate.reader import AmendTemplate, CloudReader, gpu_label, unchanged
from bayplan.autoscaler.clusterview import ClusterViewBuilder, KnownObjects
from bayplan.autoscaler.events import AutoscalerEvents
from bayplan.autoscaler.expanders import CONFIG_MAP, parse_expanders
from bayplan.autoscaler.expanders.chain import ExpanderFactory
from bayplan.autoscaler.loop import Loop, LoopParts
from bayplan.autoscaler.metrics import AutoscalerMetrics, ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import AutoscalerPlan
from bayplan.autoscaler.providers.dry_run import DryRunProvider, Show
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.status.configmap import StatusWriter
from bayplan.autoscaler.status.gauges import Gauges
from bayplan.autoscaler.status.report import StatusReport
from bayplan.base.grace import finish_within
from bayplan.client import ApiEventRecorder, Client, EventReporter, Informer, Selection, Untyped
from bayplan.client.events import EventRecorder, NullEventRecorder
from bayplan.client.resources import CONFIG_MAPS
from bayplan.fit import Profile
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver, StorageClass
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.nodegroups import NodeGroupError, Provider
from bayplan.observe import LimitCollector, LimitWatch, LiveSnapshot, follow

log = logging.getLogger(__name__)
NAME = "cluster-autoscaler"
"""The reporting component of events, as Cluster Autoscaler's."""
GRACE = 4.0
"""Seconds to write the last events when the autoscaler stops."""
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
        amend_template: AmendTemplate = unchanged,
    ) -> None:
        self._cloud = cloud
        self._amend_template = amend_template
        self._options = options or AutoscalerOptions()
        self._expanders = parse_expanders(self._options.expander)
        self._profile = profile or Profile()
        registry = registry or CollectorRegistry()
        registry.register(LimitCollector("bayplan_autoscaler", lambda: self._limits))
        self._metrics = AutoscalerMetrics(registry)
        self._scale_down = ScaleDownMetrics(registry)
        self._instance = instance
        self._show = show
        """The output of a dry run; None if it is not a dry run."""
        self.loop: Loop | None = None
        """The running loop, while it is leader."""
        self._limits: LimitWatch | None = None
        self.is_starting = False
        """Whether it is leader, and its informers have not synced yet."""
        self.ready = asyncio.Event()
        """Set while it is leader and its informers have synced."""

    def plans(self) -> tuple[AutoscalerPlan, ...]:
        """The plans of the last loops, the newest last."""
        return tuple(self.loop.plans) if self.loop is not None else ()

    async def lead(self, client: Client) -> None:
        """Scale up and down until cancelled."""
        log.info("became leader")
        self.is_starting = True
        notes = self._notes(client)
        # The cloud first: while it opens, no change of the cluster must be missed.
        async with self._cloud(client) as provider, follow(client, profile=self._profile) as live:
            recording = asyncio.ensure_future(notes.run())
            try:
                self.loop = await self._begin(client, live, self._shown(provider), notes)
                self.is_starting = False
                self.ready.set()
                await self.loop.run()
            finally:
                self.is_starting = False
                self.ready.clear()
                await _finish(notes, provider)
                recording.cancel()
                if self.loop is not None:
                    await self.loop.close()
                self.loop = self._limits = None

    async def _begin(
        self, client: Client, live: LiveSnapshot, provider: Provider, notes: EventRecorder
    ) -> Loop:
        options, clock, snapshot = self._options, client.clock, live.snapshot
        daemon_sets = live.informers.of(DaemonSet)
        drivers, classes = live.cached(CSIDriver), live.cached(StorageClass)
        builder = ClusterViewBuilder(
            snapshot, KnownObjects(daemon_sets.objects, drivers, classes), options
        )
        live.observer.listen(builder.on_event)
        await live.synced()
        # The scheduler writes events about attach limits; here they are logged and counted.
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
        deletions = node_removal.actuator.deletions
        parts = LoopParts(
            reader=CloudReader(provider, options.group_defaults(), clock, self._amend_template),
            builder=builder,
            context=context,
            instance_cleanup=FailedInstanceCleanup(context, options),
            node_cleanup=MissingDriverCleanup(
                context,
                options,
                builder.node_states,
                writer,
                snapshot.pods_on,
                RemovalLedger(writer, options),
            ),
            expander_factory=ExpanderFactory(
                self._expanders, provider, snapshot, client.rng, self._priorities(live).objects
            ),
            node_removal=node_removal,
            report=StatusReport(writer, options, builder, gauges, recorder, statuses, deletions),
        )
        return Loop(parts, options, clock)

    def _notes(self, client: Client) -> EventRecorder:
        if self._show is not None:
            return NullEventRecorder()
        return ApiEventRecorder(
            client, EventReporter(NAME, self._instance), distinguish_by_note=True
        )

    def _shown(self, provider: Provider) -> Provider:
        return provider if self._show is None else DryRunProvider(provider, self._show)

    async def _node_removal(
        self, client: Client, live: LiveSnapshot, provider: Provider, recorder: AutoscalerEvents
    ) -> NodeRemoval:
        jobs, daemon_sets = live.informers.of(Job), live.informers.of(DaemonSet)
        await jobs.synced.wait()
        context = NodeRemovalContext(
            client=client,
            provider=provider,
            controllers=Controllers(live.snapshot, jobs.objects, daemon_sets.objects),
            options=self._options,
            recorder=recorder,
            metrics=self._scale_down,
        )
        node_removal = await start_node_removal(context, acts=self._show is None)
        for pod in live.cached(Pod).values():
            node_removal.expendables.on_event(ClusterEvent.of(None, pod))
        live.observer.listen(node_removal.expendables.on_event)
        return node_removal

    def _priorities(self, live: LiveSnapshot) -> Informer[Untyped]:
        """The informer of the priority expander's ConfigMap."""
        which = Selection(self._options.namespace, fields=f"metadata.name={CONFIG_MAP}")
        return live.informers.of(CONFIG_MAPS, which)


def _warn_of_node(node: Node, _reason: str, text: str) -> None:
    log.warning("node %s: %s", node.name, text, extra={"node": node.name})


async def _finish(notes: EventRecorder, provider: Provider) -> None:
    """Write the last events and clean up the provider, within the grace time."""
    with contextlib.suppress(NodeGroupError):
        await finish_within(GRACE, _tidy_up(notes, provider))


async def _tidy_up(notes: EventRecorder, provider: Provider) -> None:
    await notes.drain()
    await provider.cleanup()
