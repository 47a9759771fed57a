"""`bayplan scheduler`: schedule pods, on any API server.

Flags that kube-scheduler has have the same names and meaning.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cyclopts import Parameter
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.base.configfiles import ConfigFileError
from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.cluster import Gates, Missing, profile_from
from bayplan.cli.options.daemon import (
    LeaderOptions,
    LogOptions,
    listen_address,
    run_daemon,
    show_decision,
)
from bayplan.cli.options.flags import Switch
from bayplan.cli.text.output import printable
from bayplan.client.client import Client, ClientOptions
from bayplan.client.daemon import (
    DaemonProcess,
    HealthEndpoint,
    Lead,
    elected,
    fastest_loop,
    process_identity,
)
from bayplan.client.errors import ClientError
from bayplan.client.serving.health import HealthPages
from bayplan.fit import Profile
from bayplan.fit.profile import OUR_SCHEDULER
from bayplan.kube.names import is_object_name
from bayplan.observe import Comparison, LiveSnapshot, compare, follow
from bayplan.queues import QueuePolicyName
from bayplan.scheduler.config import (
    QueueSettings,
    SchedulerSettings,
    default_settings,
    read_settings,
)
from bayplan.scheduler.daemon import SchedulerDaemon

log = logging.getLogger(__name__)
BUDGET = ClientOptions(qps=5000.0, burst=10_000, in_flight=128)
"""The default client limits: each pod needs a bind and an event, so they are high."""


def scheduler(  # noqa: PLR0913 - one for each option of the command
    *,
    config: Path | None = None,
    scheduler_name: tuple[str, ...] = (),
    cluster: ClusterAccess | None = None,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
    queues: QueueOptions | None = None,
    leader: LeaderOptions | None = None,
    listen: str = "127.0.0.1:0",
    dry_run: Switch = False,
    compare: Switch = False,
    logs: LogOptions | None = None,
) -> int:
    """Schedule pods until interrupted.

    SIGTERM and Ctrl-C stop it gracefully: bindings in progress are finished. On SIGUSR2 it compares
    its cache with the API server and prints the differences to standard output.

    Parameters
    ----------
    config
        A KubeSchedulerConfiguration; by default Kubernetes' defaults for each --scheduler-name.
    scheduler_name
        Schedule pods of this schedulerName, by default bayplan; may be repeated.
    listen
        Address and port of /healthz, /readyz, /livez and /metrics, without authentication; port 0
        chooses a free one, an empty value disables them.
    dry_run
        Print one line per decision; write nothing, not even events or a lease.
    compare
        Compare the cache with the API server once, print the differences and exit: 0 if there are
        none, else 1. Nothing is written.
    """
    (logs or LogOptions()).begin()
    settings = _settings(config, scheduler_name)
    settings = replace(
        settings,
        leader=(leader or LeaderOptions()).over(settings.leader),
        queues=(queues or QueueOptions()).settings(),
    )
    for warning in settings.warnings:
        log.warning("%s: %s", config, warning)
    work = _Work(
        settings,
        profile_from(feature_gates, missing_driver),
        cluster or ClusterAccess(),
        listen_address(listen) if listen else None,
        dry_run=dry_run,
    )
    return work.compare() if compare else run_daemon(work.process())


@dataclass(frozen=True, slots=True)
class _Work:
    """The parsed command line."""

    settings: SchedulerSettings
    profile: Profile
    cluster: ClusterAccess
    listen: tuple[str, int] | None
    dry_run: bool

    def process(self) -> DaemonProcess[Client]:
        """Return the process of the scheduler."""
        identity, registry = process_identity(), CollectorRegistry()
        daemon = SchedulerDaemon(
            self.settings,
            profile=self.profile,
            registry=registry,
            instance=identity,
            show=show_decision if self.dry_run else None,
        )
        leader = replace(
            self.settings.leader, elect=self.settings.leader.elect and not self.dry_run
        )
        lead = elected(daemon.lead, leader, identity)
        return DaemonProcess(
            connect=self._client,
            lead=lambda client: self._main(daemon, client, lead),
            report=lambda error: log.error("%s", error),
            health=self._health(daemon, registry),
            loaded=daemon.ready,
        )

    def compare(self) -> int:
        """Compare the cache with the API server once."""
        try:
            with asyncio.Runner(loop_factory=fastest_loop()) as runner:
                return EXIT_OK if runner.run(self._compare()) else EXIT_NO
        except ClientError as error:
            log.error("%s", error)  # noqa: TRY400 - the message is enough
            return EXIT_NO

    async def _compare(self) -> bool:
        async with self._client() as client:
            return await compare_once(client, self.profile)

    def _client(self) -> Client:
        usual, settings = BUDGET, self.settings
        qps = usual.qps if settings.qps is None else settings.qps
        burst = usual.burst if settings.burst is None else settings.burst
        access = self.cluster
        if access.kubeconfig is None and settings.kubeconfig:
            access = replace(access, kubeconfig=Path(settings.kubeconfig))
        return access.connect(replace(usual, qps=qps, burst=burst))

    def _health(
        self, daemon: SchedulerDaemon, registry: CollectorRegistry
    ) -> HealthEndpoint | None:
        if self.listen is None:
            return None
        pages = HealthPages(lambda: _not_ready(daemon), lambda: generate_latest(registry))
        return HealthEndpoint(
            "--listen",
            *self.listen,
            pages,
            lambda url: log.info("serving health and metrics at %s", url),
        )

    async def _main(self, daemon: SchedulerDaemon, client: Client, lead: Lead) -> None:
        compare_on_signal(client, lambda: daemon.live)
        names = ", ".join(profile.name for profile in self.settings.profiles)
        log.info("serving pods of %s", names)
        await lead(client)


def _settings(config: Path | None, names: tuple[str, ...]) -> SchedulerSettings:
    if config is None:
        for name in names:
            if not is_object_name(name):
                raise BadInput(f"--scheduler-name {printable(name[:80])}: not a valid name")
        return default_settings(tuple(dict.fromkeys(names)) or (OUR_SCHEDULER,))
    if names:
        raise BadInput("--scheduler-name: must not be given with --config, which has the names")
    try:
        return read_settings(config)
    except ConfigFileError as problem:
        raise BadInput(str(problem)) from problem


def _not_ready(daemon: SchedulerDaemon) -> str:
    """Return why it is not ready; a replica that waits to become leader is ready."""
    if daemon.scheduler is None or daemon.ready.is_set():
        return ""
    return "the cache is not filled yet"


log = logging.getLogger(__name__)


async def compare_once(client: Client, profile: Profile) -> bool:
    """Fill a snapshot, compare it and print the differences; return whether there are none."""
    async with follow(client, profile=profile) as live:
        await live.synced()
        return _print_comparison(await compare(live, client))


def compare_on_signal(client: Client, live: Callable[[], LiveSnapshot | None]) -> None:
    """Compare and print on SIGUSR2, one at a time."""
    under_way: set[asyncio.Task[None]] = set()

    def begin() -> None:
        if not under_way:
            under_way.add(task := asyncio.ensure_future(_compare(client, live())))
            task.add_done_callback(under_way.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, begin)


async def _compare(client: Client, live: LiveSnapshot | None) -> None:
    if live is None or not live.is_synced:
        sys.stdout.write("nothing to compare: this replica is not the leader, or is starting\n")
        sys.stdout.flush()
        return
    try:
        _print_comparison(await compare(live, client))
    except ClientError as error:
        log.warning("not compared: %s", error)


def _print_comparison(found: Comparison) -> bool:
    aside = (f"set aside: {one}" for one in found.set_aside)
    for line in (*map(str, found.differences), *aside):
        sys.stdout.write(f"{printable(line)}\n")
    outcome = "equal" if found.equal else f"{len(found.differences)} differ"
    sys.stdout.write(f"compared {found.compared} objects: {outcome}\n")
    sys.stdout.flush()
    return found.equal


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Options of queues, if the cluster has them."""

    queue_policy: QueuePolicyName = "capacity"
    """How a queue's deserved resources are determined: from its spec (capacity), or as a share by
    weight (proportion)."""
    reservation_timeout: str = "10m"
    """How long quota is reserved for ungated pods that find no node; 0s for ever."""

    def settings(self) -> QueueSettings:
        """Return the scheduler's settings."""
        try:
            timeout = parse_duration(self.reservation_timeout)
        except DurationError as error:
            raise BadInput(f"--reservation-timeout: {error}") from None
        return QueueSettings(self.queue_policy, timeout)
