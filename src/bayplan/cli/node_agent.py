"""`bayplan node-agent`: manage a node's images (--images), publish its attach limits (--limits).

Flags that the kubelet has have the same names and meaning.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from cyclopts import Parameter
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.base.clock import WallClock
from bayplan.base.flowcontrol import TokenBucket
from bayplan.cli.errors import BadInput
from bayplan.cli.images.connection import RuntimeConnection
from bayplan.cli.images.output import complain, say
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.attach_limits import LimitOptions
from bayplan.cli.options.daemon import LeaderOptions, listen_address, run_daemon
from bayplan.cli.options.flags import Switch
from bayplan.client import Client
from bayplan.client.daemon import DaemonProcess, HealthEndpoint, Lead, elected, process_identity
from bayplan.client.election import LeaderElectionSettings
from bayplan.client.errors import ClientError
from bayplan.client.logs import log_plainly
from bayplan.client.serving.endpoints import ListenError, serve_metrics
from bayplan.client.serving.health import HealthPages
from bayplan.images.agent.image_gc_loop import UnreadableGateStateError
from bayplan.images.agent.node import NodeImageOptions, serve_node
from bayplan.images.agent.node_status import MAX_IMAGES, NO_LIMIT
from bayplan.images.credentials.keyring import PodKeyring, keyring_of_file
from bayplan.images.credentials.providers.config import ProviderConfig, load_provider_config
from bayplan.images.credentials.pull_manager import CredentialVerification, VerificationPolicy
from bayplan.images.image_gc import ImageGCPolicy
from bayplan.images.manager.pulls import (
    DEFAULT_BURST,
    DEFAULT_PROGRESS_DEADLINE,
    DEFAULT_QPS,
    PullSlots,
)
from bayplan.images.runtime.cri import CriRuntime
from bayplan.node.agent import NAME, LimitsAgent

log = logging.getLogger(__name__)
LEASE = LeaderElectionSettings(name=NAME)
PolicyName = Literal[
    "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PullOptions:
    """How images are pulled."""

    serialize_image_pulls: bool = True
    """One pull at a time."""
    max_parallel_image_pulls: int | None = None
    """The maximum number of parallel pulls, if they are not serialized."""
    registry_qps: float = DEFAULT_QPS
    """The maximum number of pulls started per second; 0 for no limit."""
    registry_burst: int = DEFAULT_BURST
    """The maximum number of pulls started at once."""
    docker_config: Path | None = None
    """A Docker config.json with the node's own credentials, for every pod."""
    image_credential_provider_config: Path | None = None
    """A CredentialProviderConfig, or a directory of them, for credential provider plugins."""
    image_credential_provider_bin_dir: Path | None = None
    """The directory of the plugins' executables."""
    image_pull_progress_deadline: float = DEFAULT_PROGRESS_DEADLINE
    """Seconds without progress after which a pull is cancelled; 0 for never."""
    image_pull_credentials_verification_policy: PolicyName = "NeverVerifyPreloadedImages"
    """Which images only pods with valid credentials may use."""
    preloaded_images_verification_allowlist: tuple[str, ...] = ()
    """Names and prefix/* patterns of images that NeverVerifyAllowlistedImages does not verify."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CollectionOptions:
    """Garbage collection of images, and their list in the node's status."""

    image_gc_high_threshold: int = 85
    """Percent of disk usage from which images are removed."""
    image_gc_low_threshold: int = 80
    """Percent of disk usage down to which images are removed."""
    minimum_image_ttl: float = 120.0
    """Seconds for which a new image is not removed."""
    image_maximum_gc_age: float = 0.0
    """Seconds after which an unused image is removed at any disk usage; 0 for never."""
    node_status_images: bool = True
    """List images in the node's status."""
    node_status_max_images: int = MAX_IMAGES
    """The maximum number of images in the node's status, the largest first; -1 for all."""


def node_agent(  # noqa: PLR0913 - one for each group of options
    *,
    images: Switch = False,
    limits: Switch = False,
    node: str = "",
    connection: RuntimeConnection | None = None,
    cluster: ClusterAccess | None = None,
    pulls: PullOptions | None = None,
    collection: CollectionOptions | None = None,
    publishing: LimitOptions | None = None,
    leader: LeaderOptions | None = None,
    listen: str = "",
    metrics_port: int = 0,
) -> int:
    """Run the agent of a node until interrupted.

    Parameters
    ----------
    images
        Pull images for the node's pods, and remove unused ones.
    limits
        Publish the node's attach limits by instance type; with
        --feature-gates=AttachVolumeLimit=false, remove published limits.
    node
        The node's name; by default this machine's host name.
    listen
        Address and port of /healthz, /readyz, /livez and /metrics; empty for none.
    metrics_port
        The port of Prometheus metrics on 127.0.0.1; 0 for none.
    """
    if not (images or limits):
        raise BadInput("nothing to do: give --images, --limits, or both")
    log_plainly()
    connection = connection or RuntimeConnection()
    name = node or socket.gethostname().lower()
    registry = CollectorRegistry()
    works: list[Lead] = []
    publisher: LimitsPublisher | None = None
    if images:
        options = _options(name, connection, pulls, collection)
        works.append(lambda client: _serve_images(client, connection, options, registry))
    if limits:
        wish, lead = publishing or LimitOptions(), leader or LeaderOptions()
        gates = connection.feature_gates
        publisher = LimitsPublisher.of(wish, lead, name, gates, registry)
        works.append(publisher.lead())
    _expose(registry, metrics_port)
    process = DaemonProcess(
        connect=(cluster or ClusterAccess()).connect,
        lead=lambda client: _together([one(client) for one in works]),
        report=complain,
        failures=(ClientError, OSError),
        health=_health_endpoint(listen, registry, publisher),
        loop_factory=None,
    )
    return run_daemon(process)


async def _serve_images(
    client: Client,
    connection: RuntimeConnection,
    options: NodeImageOptions,
    registry: CollectorRegistry,
) -> None:
    say(f"managing the images of node {options.node}")
    async with CriRuntime(connection.endpoint, connection.timeout) as runtime:
        try:
            await serve_node(client, runtime, options, WallClock(), registry)
        except (OSError, UnreadableGateStateError) as error:
            raise BadInput(f"--state-dir {connection.state_dir}: {error}") from error


async def _together(works: Sequence[Awaitable[None]]) -> None:
    """Run all until one fails, which cancels the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _expose(registry: CollectorRegistry, port: int) -> None:
    try:
        serve_metrics(registry, port)
    except ListenError as error:
        raise BadInput(error.short) from error


def _options(
    node: str,
    connection: RuntimeConnection,
    pulls: PullOptions | None,
    collection: CollectionOptions | None,
) -> NodeImageOptions:
    pulls, collection = pulls or PullOptions(), collection or CollectionOptions()
    try:
        return NodeImageOptions(
            node=node,
            state_dir=connection.state_dir,
            use_handlers=connection.use_handlers,
            collection=_collection_policy(collection),
            verification=CredentialVerification(
                VerificationPolicy(pulls.image_pull_credentials_verification_policy),
                pulls.preloaded_images_verification_allowlist,
            ),
            bucket=TokenBucket(pulls.registry_qps, pulls.registry_burst),
            slots=PullSlots(
                serialize=pulls.serialize_image_pulls, max_parallel=pulls.max_parallel_image_pulls
            ),
            node_keyring=_node_keyring(pulls.docker_config),
            providers=_providers(pulls),
            provider_folder=pulls.image_credential_provider_bin_dir or Path(),
            progress_deadline=pulls.image_pull_progress_deadline,
            status_images=_status_images(collection),
        )
    except ValueError as error:
        raise BadInput(str(error)) from error


def _status_images(options: CollectionOptions) -> int | None:
    if options.node_status_max_images < NO_LIMIT:
        raise ValueError(
            f"--node-status-max-images {options.node_status_max_images}: must be -1 or more"
        )
    return options.node_status_max_images if options.node_status_images else None


def _collection_policy(options: CollectionOptions) -> ImageGCPolicy:
    return ImageGCPolicy(
        options.image_gc_high_threshold,
        options.image_gc_low_threshold,
        timedelta(seconds=options.minimum_image_ttl),
        timedelta(seconds=options.image_maximum_gc_age),
    )


def _node_keyring(path: Path | None) -> PodKeyring:
    if path is None:
        return PodKeyring()
    try:
        return keyring_of_file(path)
    except (OSError, ValueError) as error:
        raise BadInput(f"--docker-config: {error}") from error


def _providers(pulls: PullOptions) -> ProviderConfig | None:
    config, programs = (
        pulls.image_credential_provider_config,
        pulls.image_credential_provider_bin_dir,
    )
    if config is None and programs is None:
        return None
    if config is None or programs is None:
        raise BadInput(
            "--image-credential-provider-config and --image-credential-provider-bin-dir: "
            "must be given together"
        )
    if not programs.is_dir():
        raise BadInput(f"--image-credential-provider-bin-dir: {programs} is not a directory")
    return load_provider_config(config, programs)


@dataclass(frozen=True, slots=True)
class LimitsPublisher:
    """The agent of attach limits, and its leader election."""

    agent: LimitsAgent
    leader: LeaderElectionSettings
    identity: str

    @classmethod
    def of(
        cls,
        options: LimitOptions,
        leader: LeaderOptions,
        node: str,
        feature_gates: str,
        registry: CollectorRegistry,
    ) -> LimitsPublisher:
        """Return the publisher for the options; BadInput if they are invalid."""
        identity = process_identity()
        only_node = "" if options.all_nodes else node
        settings = options.terms.settings(feature_gates, csi_nodes=options.write_csinodes)
        agent = LimitsAgent(settings, node=only_node, registry=registry, instance=identity)
        usual = LeaderElectionSettings(elect=options.all_nodes, name=LEASE.name)
        return cls(agent, leader.over(usual), identity)

    def lead(self) -> Lead:
        """Return the work: publish until cancelled; for all nodes, only as the leader."""
        return elected(self.agent.lead, self.leader, self.identity)


def _health_endpoint(
    listen: str, registry: CollectorRegistry, publisher: LimitsPublisher | None
) -> HealthEndpoint | None:
    """Return the endpoint of health and metrics; None if it is disabled."""
    if not listen:
        return None

    def why_not() -> str:
        starting = publisher is not None and publisher.agent.is_starting
        return "not all nodes are processed yet" if starting else ""

    pages = HealthPages(why_not, lambda: generate_latest(registry))
    return HealthEndpoint(
        "--listen",
        *listen_address(listen),
        pages,
        lambda url: log.info("serving health and metrics at %s", url),
    )
