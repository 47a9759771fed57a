"""A node's images as a whole: the parts put together, started and stopped in order.

The runtime is waited for, however late it comes. The gate's state is noted before anything is
pulled, and pulls that an earlier run did not see end are settled. Then every pod that is bound to
the node gets its images, the node's status tells which are there, and housekeeping makes its
rounds, until the agent is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from prometheus_client import CollectorRegistry

from bayplan.base.clock import Clock
from bayplan.base.pacing import Backoff, TokenBucket
from bayplan.client.client import Client
from bayplan.client.events import Recorder, Reporter
from bayplan.client.informers import Change, Informers
from bayplan.client.verbs.reads import Selection
from bayplan.images.agent.housekeeping import GateLedger, Housekeeping
from bayplan.images.agent.live import LiveCluster, LiveEvents, LiveNodeStatus
from bayplan.images.agent.node_status import (
    MOST_IMAGES,
    PERIOD,
    REPORT_PERIOD,
    ImageTeller,
    NodeStatus,
)
from bayplan.images.agent.pod_images import PodImages
from bayplan.images.collection import CollectionPolicy, Collector, DiskProbe, probe_disk
from bayplan.images.credentials.keyring import PodKeyring
from bayplan.images.credentials.memory import PullMemory, Verification
from bayplan.images.credentials.providers.config import ProviderConfig
from bayplan.images.credentials.providers.provider import Providers, ServiceAccounts, providers_of
from bayplan.images.credentials.records import RecordFiles
from bayplan.images.manager.manager import ImageManager
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.manager.pulls import (
    DEFAULT_BURST,
    DEFAULT_PROGRESS_DEADLINE,
    DEFAULT_QPS,
    KeyedBackoff,
    Puller,
    PullLine,
)
from bayplan.images.manager.wanted import Cluster, EventSink, Subject
from bayplan.images.runtime.objects import Image, ImageRuntime, RuntimeCallError, with_gate
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import RuntimeClass

log = logging.getLogger(__name__)

COMPONENT = "bayplan-node-agent"
_ASK_AGAIN = 5.0


@dataclass(frozen=True, slots=True)
class NodeImageOptions:
    """What an operator says of a node's images."""

    node: str
    state_dir: Path
    use_handlers: bool = True
    collection: CollectionPolicy = field(default_factory=CollectionPolicy)
    verification: Verification = field(default_factory=Verification)
    bucket: TokenBucket = field(default_factory=lambda: TokenBucket(DEFAULT_QPS, DEFAULT_BURST))
    line: PullLine = field(default_factory=PullLine)
    node_keyring: PodKeyring = field(default_factory=PodKeyring)
    providers: ProviderConfig | None = None
    provider_folder: Path = Path()
    progress_deadline: float = DEFAULT_PROGRESS_DEADLINE
    status_images: int | None = MOST_IMAGES
    """How many images the node's status tells; None leaves the status alone."""
    probe: DiskProbe = probe_disk


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Whom a node's agent talks to."""

    runtime: ImageRuntime
    cluster: Cluster
    events: EventSink
    clock: Clock
    metrics: CollectorRegistry
    accounts: ServiceAccounts | None = None
    status: NodeStatus | None = None
    rng: Random = field(default_factory=Random)


class NodeImages:
    """The parts that serve one node's pods."""

    def __init__(self, options: NodeImageOptions, around: Surroundings) -> None:
        self._options = options
        self._unfiltered = around.runtime
        self._clock = clock = around.clock
        seen = with_gate(around.runtime, enabled=options.use_handlers)
        counters = ImageMetrics(around.metrics)
        memory = PullMemory(RecordFiles(options.state_dir), options.verification, clock)
        self.ledger = GateLedger.in_state_dir(options.state_dir)
        self.manager = self._manager(around, seen, memory, counters)
        self.pods = PodImages(self.manager, clock)
        collector = Collector(
            seen, clock, options.collection, options.probe, self.pods.in_use, self.pods.lock
        )
        node = Subject("Node", options.node)
        self.housekeeping = Housekeeping(
            collector, memory, self.ledger, around.events, counters, clock, node
        )

        self._teller = self._told_by(around, seen)

    def _told_by(self, around: Surroundings, seen: ImageRuntime) -> ImageTeller | None:
        limit = self._options.status_images
        if around.status is None or limit is None:
            return None
        backoff = Backoff(around.rng, first=PERIOD, longest=REPORT_PERIOD)
        return ImageTeller(seen, around.status, around.clock, backoff, limit)

    async def tell(self) -> None:
        """Keep the node's status true, if that is wanted."""
        if self._teller is not None:
            await self._teller.run()

    def _manager(
        self, around: Surroundings, seen: ImageRuntime, memory: PullMemory, counters: ImageMetrics
    ) -> ImageManager:
        options, clock = self._options, around.clock
        puller = Puller(seen, clock, options.line, options.bucket)
        puller.progress, puller.progress_deadline = self._progress, options.progress_deadline
        return ImageManager(
            runtime=seen,
            cluster=around.cluster,
            events=around.events,
            memory=memory,
            puller=puller,
            backoff=KeyedBackoff(),
            metrics=counters,
            clock=clock,
            node_keyring=options.node_keyring,
            providers=self._providers(around, counters),
            use_handlers=options.use_handlers,
        )

    def _providers(self, around: Surroundings, counters: ImageMetrics) -> Providers:
        config = self._options.providers
        if config is None:
            return Providers()
        counters.provider_config(config.hash)
        folder = self._options.provider_folder
        return providers_of(config, folder, around.clock, around.accounts, counters)

    async def start(self) -> None:
        """Wait for the runtime, note the gate, and settle what an earlier run left."""
        images = await self._until_answered()
        self.ledger.started(images, enabled=self._options.use_handlers)
        self.manager.memory.recover(images)

    def pod_changed(self, change: Change[Pod]) -> None:
        """A pod of this node came, changed or went."""
        if change.type == "deleted":
            self.pods.pod_gone(change.object.metadata.uid)
        else:
            if change.old and change.old.metadata.uid != change.object.metadata.uid:
                self.pods.pod_gone(change.old.metadata.uid)
            self.pods.pod_seen(change.object)

    async def _until_answered(self) -> list[Image]:
        while True:
            try:
                return await self._unfiltered.list_images()
            except RuntimeCallError as error:
                log.warning("the runtime does not answer yet: %s", error)
                await self._clock.sleep(_ASK_AGAIN)

    async def _progress(self) -> object:
        """Whatever changes on the disk of the images is taken for progress."""
        filesystems = await self._unfiltered.image_filesystems()
        return [
            (usage.used_bytes, usage.inodes_used, self._options.probe(usage.mountpoint))
            for usage in filesystems
        ]


async def serve_node(
    client: Client,
    runtime: ImageRuntime,
    options: NodeImageOptions,
    clock: Clock,
    metrics: CollectorRegistry,
) -> None:
    """Serve a node's pods until cancelled."""
    recorder = Recorder(client, Reporter(COMPONENT, options.node))
    sending = asyncio.ensure_future(recorder.run())
    try:
        async with Informers(client) as informers:
            classes = informers.of(RuntimeClass).objects
            cluster = LiveCluster(client, classes)
            around = Surroundings(
                runtime,
                cluster,
                LiveEvents(recorder),
                clock,
                metrics,
                cluster,
                LiveNodeStatus(client, options.node),
                client.rng,
            )
            await _serve(NodeImages(options, around), informers, options.node)
    finally:
        sending.cancel()


async def _serve(images: NodeImages, informers: Informers, node: str) -> None:
    pods = informers.of(Pod, Selection(fields=f"spec.nodeName={node}"))
    await images.start()
    await informers.synced()
    pods.on_change(images.pod_changed)
    telling = asyncio.ensure_future(images.tell())
    try:
        await images.housekeeping.run()
    finally:
        telling.cancel()
        await images.pods.stop()
