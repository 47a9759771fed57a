"""A loop of the autoscaler at 5,000 nodes and 100,000 pods, with nothing to do.

The cloud answers at once, so what is measured is the loop's own work: reading twenty groups, seeing
that nothing has changed, telling how everything stands. `busy` is a loop before which a tenth of
the nodes have sent their heartbeats.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from random import Random

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bayplan.autoscaler.actuation.cleanup import FailedInstanceCleanup
from bayplan.autoscaler.actuation.missing_drivers import MissingDriverCleanup
from bayplan.autoscaler.actuation.node_removal import NodeRemovalContext, start_node_removal
from bayplan.autoscaler.actuation.removal_ledger import RemovalLedger
from bayplan.autoscaler.actuation.scale_up import ActuationContext
from bayplan.autoscaler.cloudstate.reader import CloudReader
from bayplan.autoscaler.clusterview import ClusterViewBuilder, KnownObjects
from bayplan.autoscaler.events import AutoscalerEvents
from bayplan.autoscaler.expanders.chain import ExpanderFactory
from bayplan.autoscaler.loop import Loop, LoopParts
from bayplan.autoscaler.metrics import AutoscalerMetrics, ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.provider import DeclaredProvider
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.status.configmap import StatusWriter
from bayplan.autoscaler.status.gauges import Gauges
from bayplan.autoscaler.status.report import StatusReport
from bayplan.base.clock import WallClock
from bayplan.client import Access, Client
from bayplan.client.events import NullEventRecorder
from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.meta import Condition, KubeObject
from bayplan.kube.nodes import Node
from bayplan.nodegroups import Provider
from bench import clusters
from bench.measure import Result

NODES, PODS, GROUPS = 5000, 100_000, 20
LOOPS = 20
POOL = "example.com/pool"
LONG_AGO = "2020-01-01T00:00:00Z"


def cases() -> Iterator[Result]:
    """Milliseconds a loop, the best of several."""
    yield from asyncio.run(_cases())


async def _cases() -> list[Result]:
    async with Client(Access("https://nowhere.example.com")) as client:
        return await _measured(client)


async def _measured(client: Client) -> list[Result]:
    snapshot, builder, loop = await _made(client)
    await loop.run_once()
    gc.collect()
    gc.freeze()
    idle = [await _timed(loop) for _ in range(LOOPS)]
    busy = [await _busy(snapshot, builder, loop) for _ in range(LOOPS)]
    gc.unfreeze()
    return [
        Result("autoscaler/idle/5000", min(idle), "ms"),
        Result("autoscaler/busy/5000", min(busy), "ms"),
    ]


async def _busy(snapshot: Snapshot, builder: ClusterViewBuilder, loop: Loop) -> float:
    """A loop after nodes have sent their heartbeats."""
    for index in range(0, NODES, 10):
        node = snapshot.get(Node, f"node-{index}")
        if node is not None:
            beat = replace(node, metadata=replace(node.metadata, resource_version="2"))
            snapshot.put(beat)
            builder.on_event(ClusterEvent.of(node, beat))
    return await _timed(loop)


async def _timed(loop: Loop) -> float:
    start = time.perf_counter()
    plan = await loop.run_once()
    if plan.status != "nothing to do":
        raise RuntimeError(f"the loop was not idle: {plan.status}: {plan.message}")
    return (time.perf_counter() - start) * 1000


async def _made(client: Client) -> tuple[Snapshot, ClusterViewBuilder, Loop]:
    objects = _objects()
    snapshot = Snapshot(objects)
    declared = [
        Declaration(name, 0, 1000, node_selector={POOL: name})
        for name in (f"group-{number}" for number in range(GROUPS))
    ]
    cloud = DeclaredProvider(declared, (obj for obj in objects if isinstance(obj, Node)))
    options = AutoscalerOptions()
    builder = ClusterViewBuilder(snapshot, KnownObjects({}, {}, {}), options)
    for obj in objects:
        builder.on_event(ClusterEvent.of(None, obj))
    return snapshot, builder, await _loop(client, cloud, builder, options)


async def _loop(
    client: Client, provider: Provider, builder: ClusterViewBuilder, options: AutoscalerOptions
) -> Loop:
    snapshot = builder.snapshot
    clock, metrics = WallClock(), AutoscalerMetrics(CollectorRegistry())
    recorder = AutoscalerEvents(NullEventRecorder(), options, clock)
    context = ActuationContext(
        provider, builder.registry, builder.backoff, recorder, metrics, clock
    )
    gauges = Gauges(metrics, builder.node_states, snapshot)
    statuses = StatusWriter(snapshot.profile.gates)
    given = NodeRemovalContext(
        client=client,
        provider=provider,
        controllers=Controllers(snapshot, {}, {}),
        options=options,
        recorder=recorder,
        metrics=ScaleDownMetrics(CollectorRegistry()),
    )
    node_removal = await start_node_removal(given, acts=False)
    going = node_removal.actuator.deletions
    parts = LoopParts(
        reader=CloudReader(provider, options.group_defaults(), clock),
        builder=builder,
        context=context,
        instance_cleanup=FailedInstanceCleanup(context, options),
        node_cleanup=MissingDriverCleanup(
            *(context, options, builder.node_states, None, snapshot.pods_on),
            RemovalLedger(None, options),
        ),
        expander_factory=ExpanderFactory(("least-waste",), provider, snapshot, Random(1), {}),
        node_removal=node_removal,
        report=StatusReport(None, options, builder, gauges, recorder, statuses, going),
    )
    return Loop(parts, options, clock)


def _objects() -> list[KubeObject]:
    nodes = clusters.nodes(NODES)
    ready = Condition(type="Ready", status="True", last_transition_time=LONG_AGO)
    for index, node in enumerate(nodes):
        node.spec.provider_id = f"bench://{index}"
        node.metadata.labels[POOL] = f"group-{index % GROUPS}"
        node.metadata.uid = f"node-{index}"
        node.metadata.creation_timestamp = LONG_AGO
        node.status.conditions = [ready]
    pods = clusters.plain_pods(PODS)
    for index, pod in enumerate(pods):
        pod.metadata.uid = f"pod-{index}"
        pod.spec.node_name = f"node-{index % NODES}"
        pod.status.phase = "Running"
    return [*nodes, *clusters.csinodes(NODES), *pods]
