"""The image agent of a node: its parts put together, started and stopped in order.

It waits for the runtime, records the gate's state before anything is pulled, and recovers pulls
that an earlier run did not finish. Then it pulls the images of every pod that is bound to the node,
reports the node's images in its status, and runs the image GC loop, until it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from prometheus_client import CollectorRegistry

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import ExponentialBackoff, TokenBucket
from bayplan.client.client import Client
from bayplan.client.events import ApiEventRecorder, EventReporter
from bayplan.client.informers import Change, Informers
from bayplan.client.verbs.reads import Selection
from bayplan.images.agent.image_gc_loop import GateStateFile, ImageGCLoop
from bayplan.images.agent.live import LiveCluster, LiveEvents, LiveNodeStatus
from bayplan.images.agent.node_status import (
    MAX_IMAGES,
    PERIOD,
    REPORT_PERIOD,
    NodeImagesReporter,
    NodeStatusImages,
)
from bayplan.images.agent.pod_images import PodImages
from bayplan.images.credentials.keyring import PodKeyring
from bayplan.images.credentials.providers.config import ProviderConfig
from bayplan.images.credentials.providers.provider import (
    CredentialProviders,
    ServiceAccounts,
    providers_of,
)
from bayplan.images.credentials.pull_manager import CredentialVerification, ImagePullManager
from bayplan.images.credentials.records import PullRecordFiles
from bayplan.images.image_gc import DiskProbe, ImageGCManager, ImageGCPolicy, probe_disk
from bayplan.images.manager.image_request import ClusterObjects, ImageEventSink, InvolvedObject
from bayplan.images.manager.manager import ImageManager
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.manager.pulls import (
    DEFAULT_BURST,
    DEFAULT_PROGRESS_DEADLINE,
    DEFAULT_QPS,
    ImagePuller,
    KeyedBackoff,
    PullSlots,
)
from bayplan.images.runtime.objects import Image, ImageRuntime, RuntimeCallError, with_gate
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import RuntimeClass

log = logging.getLogger(__name__)

COMPONENT = "bayplan-node-agent"
_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NodeImageOptions:
    """The operator's options of a node's image agent."""

    node: str
    state_dir: Path
    use_handlers: bool = True
    collection: ImageGCPolicy = field(default_factory=ImageGCPolicy)
    verification: CredentialVerification = field(default_factory=CredentialVerification)
    bucket: TokenBucket = field(default_factory=lambda: TokenBucket(DEFAULT_QPS, DEFAULT_BURST))
    slots: PullSlots = field(default_factory=PullSlots)
    node_keyring: PodKeyring = field(default_factory=PodKeyring)
    providers: ProviderConfig | None = None
    provider_folder: Path = Path()
    progress_deadline: float = DEFAULT_PROGRESS_DEADLINE
    status_images: int | None = MAX_IMAGES
    """The most images in the node's status; None to leave the status alone."""
    probe: DiskProbe = probe_disk


@dataclass(frozen=True, slots=True)
class AgentDependencies:
    """The runtime, the cluster and the other parts that the image agent uses."""

    runtime: ImageRuntime
    cluster: ClusterObjects
    events: ImageEventSink
    clock: Clock
    metrics: CollectorRegistry
    accounts: ServiceAccounts | None = None
    status: NodeStatusImages | None = None
    rng: Random = field(default_factory=Random)


class NodeImageAgent:
    """The image agent of one node."""

    def __init__(self, options: NodeImageOptions, dependencies: AgentDependencies) -> None:
        self._options = options
        self._runtime = dependencies.runtime
        self._clock = clock = dependencies.clock
        seen = with_gate(dependencies.runtime, enabled=options.use_handlers)
        counters = ImageMetrics(dependencies.metrics)
        pull_manager = ImagePullManager(
            PullRecordFiles(options.state_dir), options.verification, clock
        )
        self.gate_file = GateStateFile.in_state_dir(options.state_dir)
        self.manager = self._manager(dependencies, seen, pull_manager, counters)
        self.pods = PodImages(self.manager, clock)
        gc_manager = ImageGCManager(
            seen, clock, options.collection, options.probe, self.pods.in_use, self.pods.lock
        )
        node = InvolvedObject("Node", options.node)
        self.gc_loop = ImageGCLoop(
            gc_manager, pull_manager, self.gate_file, dependencies.events, counters, clock, node
        )

        self._reporter = self._make_reporter(dependencies, seen)

    def _make_reporter(
        self, dependencies: AgentDependencies, seen: ImageRuntime
    ) -> NodeImagesReporter | None:
        limit = self._options.status_images
        if dependencies.status is None or limit is None:
            return None
        backoff = ExponentialBackoff(dependencies.rng, first=PERIOD, longest=REPORT_PERIOD)
        return NodeImagesReporter(seen, dependencies.status, dependencies.clock, backoff, limit)

    async def report(self) -> None:
        """Report the node's images in its status, if that is enabled."""
        if self._reporter is not None:
            await self._reporter.run()

    def _manager(
        self,
        dependencies: AgentDependencies,
        seen: ImageRuntime,
        pull_manager: ImagePullManager,
        counters: ImageMetrics,
    ) -> ImageManager:
        options, clock = self._options, dependencies.clock
        puller = ImagePuller(seen, clock, options.slots, options.bucket)
        puller.progress, puller.progress_deadline = self._progress, options.progress_deadline
        return ImageManager(
            runtime=seen,
            cluster=dependencies.cluster,
            events=dependencies.events,
            pull_manager=pull_manager,
            puller=puller,
            backoff=KeyedBackoff(),
            metrics=counters,
            clock=clock,
            node_keyring=options.node_keyring,
            providers=self._providers(dependencies, counters),
            use_handlers=options.use_handlers,
        )

    def _providers(
        self, dependencies: AgentDependencies, counters: ImageMetrics
    ) -> CredentialProviders:
        config = self._options.providers
        if config is None:
            return CredentialProviders()
        counters.provider_config(config.hash)
        folder = self._options.provider_folder
        return providers_of(config, folder, dependencies.clock, dependencies.accounts, counters)

    async def start(self) -> None:
        """Wait for the runtime, record the gate, and recover interrupted pulls."""
        images = await self._wait_for_runtime()
        self.gate_file.record_start(images, enabled=self._options.use_handlers)
        self.manager.pull_manager.recover(images)

    def pod_changed(self, change: Change[Pod]) -> None:
        """Handle a pod of this node that was added, updated or deleted."""
        if change.type == "deleted":
            self.pods.pod_gone(change.object.metadata.uid)
        else:
            if change.old and change.old.metadata.uid != change.object.metadata.uid:
                self.pods.pod_gone(change.old.metadata.uid)
            self.pods.pod_seen(change.object)

    async def _wait_for_runtime(self) -> list[Image]:
        while True:
            try:
                return await self._runtime.list_images()
            except RuntimeCallError as error:
                log.warning("container runtime is not available, retrying: %s", error)
                await self._clock.sleep(_RETRY_SECONDS)

    async def _progress(self) -> object:
        """Return a sample of the image filesystems; any change counts as progress of a pull."""
        filesystems = await self._runtime.image_filesystems()
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
    """Run the image agent of a node until cancelled."""
    recorder = ApiEventRecorder(client, EventReporter(COMPONENT, options.node))
    sending = asyncio.ensure_future(recorder.run())
    try:
        async with Informers(client) as informers:
            classes = informers.of(RuntimeClass).objects
            cluster = LiveCluster(client, classes)
            dependencies = AgentDependencies(
                runtime,
                cluster,
                LiveEvents(recorder),
                clock,
                metrics,
                cluster,
                LiveNodeStatus(client, options.node),
                client.rng,
            )
            await _serve(NodeImageAgent(options, dependencies), informers, options.node)
    finally:
        sending.cancel()


async def _serve(images: NodeImageAgent, informers: Informers, node: str) -> None:
    pods = informers.of(Pod, Selection(fields=f"spec.nodeName={node}"))
    await images.start()
    await informers.synced()
    pods.on_change(images.pod_changed)
    reporting = asyncio.ensure_future(images.report())
    try:
        await images.gc_loop.run()
    finally:
        reporting.cancel()
        await images.pods.stop()
