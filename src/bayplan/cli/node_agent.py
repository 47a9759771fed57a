"""`bayplan node-agent`: what Bayplan does on a node; with --images, its images, with --limits, its
attach limits.

The options are named as the kubelet's, and mean the same.
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
from bayplan.base.pacing import TokenBucket
from bayplan.cli.errors import BadInput
from bayplan.cli.images.connection import Connection
from bayplan.cli.images.output import complain, say
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.attach_limits import LimitOptions
from bayplan.cli.options.daemon import LeaderOptions, listen_address, run_daemon
from bayplan.cli.options.flags import Switch
from bayplan.client import Client
from bayplan.client.daemon import DaemonProcess, HealthEndpoint, Lead, elected, process_identity
from bayplan.client.election import LeaderSettings
from bayplan.client.errors import ClientError
from bayplan.client.logs import log_plainly
from bayplan.client.serving.binding import ListenError, serve_metrics
from bayplan.client.serving.health import HealthPages
from bayplan.images.agent.housekeeping import UnreadableGateStateError
from bayplan.images.agent.node import NodeImageOptions, serve_node
from bayplan.images.agent.node_status import MOST_IMAGES, NO_LIMIT
from bayplan.images.collection import CollectionPolicy
from bayplan.images.credentials.keyring import PodKeyring, keyring_of_file
from bayplan.images.credentials.memory import Verification, VerificationPolicy
from bayplan.images.credentials.providers.config import ProviderConfig, load_provider_config
from bayplan.images.manager.pulls import (
    DEFAULT_BURST,
    DEFAULT_PROGRESS_DEADLINE,
    DEFAULT_QPS,
    PullLine,
)
from bayplan.images.runtime.cri import CriRuntime
from bayplan.node.agent import NAME, LimitsAgent

log = logging.getLogger(__name__)
LEASE = LeaderSettings(name=NAME)
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
    """At most so many pulls at once, if they are not serialized."""
    registry_qps: float = DEFAULT_QPS
    """Pulls that may begin in a second; 0 for no limit."""
    registry_burst: int = DEFAULT_BURST
    """Pulls that may begin at once."""
    docker_config: Path | None = None
    """A Docker config.json with the node's own credentials, for every pod."""
    image_credential_provider_config: Path | None = None
    """A CredentialProviderConfig, or a directory of them: plugins that give credentials."""
    image_credential_provider_bin_dir: Path | None = None
    """The directory of the plugins' programs."""
    image_pull_progress_deadline: float = DEFAULT_PROGRESS_DEADLINE
    """Seconds without any change on the disk after which a pull is ended; 0 for never."""
    image_pull_credentials_verification_policy: PolicyName = "NeverVerifyPreloadedImages"
    """Which images are handed only to pods that have their secret."""
    preloaded_images_verification_allowlist: tuple[str, ...] = ()
    """Names and prefix/* patterns that NeverVerifyAllowlistedImages does not verify."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CollectionOptions:
    """How images are collected, and told of."""

    image_gc_high_threshold: int = 85
    """Percent of the disk from which on images are removed."""
    image_gc_low_threshold: int = 80
    """Percent of the disk down to which images are removed."""
    minimum_image_ttl: float = 120.0
    """Seconds for which a new image is safe."""
    image_maximum_gc_age: float = 0.0
    """Seconds after which an unused image goes whatever the disk says; 0 for never."""
    node_status_images: bool = True
    """Tell which images are there in the node's status."""
    node_status_max_images: int = MOST_IMAGES
    """At most so many, the largest first; -1 for all."""


def node_agent(  # noqa: PLR0913 - one for each group of options
    *,
    images: Switch = False,
    limits: Switch = False,
    node: str = "",
    connection: Connection | None = None,
    cluster: ClusterAccess | None = None,
    pulls: PullOptions | None = None,
    collection: CollectionOptions | None = None,
    publishing: LimitOptions | None = None,
    leader: LeaderOptions | None = None,
    listen: str = "",
    metrics_port: int = 0,
) -> int:
    """Serve a node until interrupted.

    Parameters
    ----------
    images
        Pull images for the pods that are bound to the node, and collect unused ones.
    limits
        Publish how many volumes the node can attach, by its instance type; with
        --feature-gates=AttachVolumeLimit=false, take back what was published.
    node
        The node's name; without it, this machine's.
    listen
        Address and port of /healthz, /readyz, /livez and /metrics; none if empty.
    metrics_port
        Expose Prometheus metrics on this port of 127.0.0.1; 0 for none.
    """
    if not (images or limits):
        raise BadInput("say what the agent shall do: --images, --limits, or both")
    log_plainly()
    connection = connection or Connection()
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
    client: Client, connection: Connection, options: NodeImageOptions, registry: CollectorRegistry
) -> None:
    say(f"serving the images of node {options.node}")
    async with CriRuntime(connection.endpoint, connection.timeout) as runtime:
        try:
            await serve_node(client, runtime, options, WallClock(), registry)
        except (OSError, UnreadableGateStateError) as error:
            raise BadInput(f"--state-dir {connection.state_dir}: {error}") from error


async def _together(works: Sequence[Awaitable[None]]) -> None:
    """All of them until one fails, which ends the others."""
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
    connection: Connection,
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
            verification=Verification(
                VerificationPolicy(pulls.image_pull_credentials_verification_policy),
                pulls.preloaded_images_verification_allowlist,
            ),
            bucket=TokenBucket(pulls.registry_qps, pulls.registry_burst),
            line=PullLine(
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


def _collection_policy(options: CollectionOptions) -> CollectionPolicy:
    return CollectionPolicy(
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
            "neither does without the other"
        )
    if not programs.is_dir():
        raise BadInput(f"--image-credential-provider-bin-dir: {programs} is no directory")
    return load_provider_config(config, programs)


@dataclass(frozen=True, slots=True)
class LimitsPublisher:
    """What the command line asked for."""

    agent: LimitsAgent
    leader: LeaderSettings
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
        """BadInput if it makes no sense."""
        identity = process_identity()
        whom = "" if options.all_nodes else node
        settings = options.terms.settings(feature_gates, csi_nodes=options.write_csinodes)
        agent = LimitsAgent(settings, node=whom, registry=registry, instance=identity)
        usual = LeaderSettings(elect=options.all_nodes, name=LEASE.name)
        return cls(agent, leader.over(usual), identity)

    def lead(self) -> Lead:
        """Publish until cancelled; of several that publish for all nodes, one does."""
        return elected(self.agent.lead, self.leader, self.identity)


def _health_endpoint(
    listen: str, registry: CollectorRegistry, publisher: LimitsPublisher | None
) -> HealthEndpoint | None:
    """Health and metrics of the agent; None if they are not to be served."""
    if not listen:
        return None

    def why_not() -> str:
        starting = publisher is not None and publisher.agent.is_starting
        return "not every node has been looked at yet" if starting else ""

    pages = HealthPages(why_not, lambda: generate_latest(registry))
    return HealthEndpoint(
        "--listen",
        *listen_address(listen),
        pages,
        lambda url: log.info("serving health and metrics at %s", url),
    )
