"""`bayplan autoscaler`: buy nodes for pods that wait, and give back those that nobody needs.

The options that Cluster Autoscaler has are named as there, and mean the same.
"""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.autoscaler.cloudstate.reader import Expects
from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.estimate.limits import ResourceLimitError, read_resource_limits
from bayplan.autoscaler.expanders import ExpanderError, parse_expanders
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.providers import ProviderOptionError, ProviderOptions
from bayplan.autoscaler.providers.registry import check_options, open_provider
from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.errors import BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.attach_limits import ExpectedLimits
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
from bayplan.client.client import Client, Tuning
from bayplan.client.daemon import (
    DaemonProcess,
    HealthEndpoint,
    elected,
    process_identity,
)
from bayplan.client.election import LeaderSettings
from bayplan.client.errors import ClientError
from bayplan.client.serving.health import HealthPages
from bayplan.fit import Profile
from bayplan.nodegroups import NodeGroupError, Provider

log = logging.getLogger(__name__)
BUDGET = Tuning(qps=200.0, burst=400, in_flight=32)
LEASE = LeaderSettings(name="cluster-autoscaler")
SHORTEST_TOKEN = 16


def autoscaler(  # noqa: PLR0913 - one for each option of the command
    *,
    cluster: ClusterAccess | None = None,
    cloud: Annotated[ProviderOptions | None, Parameter(name="*")] = None,
    options: Annotated[AutoscalerOptions | None, Parameter(name="*")] = None,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
    limits: ExpectedLimits | None = None,
    leader: LeaderOptions | None = None,
    listen: Annotated[str, Parameter(name=["--listen", "--address"])] = "127.0.0.1:8085",
    plan_token_file: Path | None = None,
    dry_run: Switch = False,
    logs: LogOptions | None = None,
) -> int:
    """Buy nodes for pods that wait, and give back those that nobody needs, until interrupted.

    SIGTERM and Ctrl-C end it in order.

    Parameters
    ----------
    listen
        Address and port of /healthz, /readyz, /livez, /metrics and /plan; port 0 takes a free one,
        an empty address serves nothing. /plan, what the last loops decided, is for this machine,
        and for whoever has the token.
    plan_token_file
        A file with the token that lets others than this machine read /plan.
    dry_run
        Print what would be asked of the cloud; write nothing at all, not even events or a lease.
    """
    (logs or LogOptions()).begin()
    work = _Work(
        cloud or ProviderOptions(),
        options or AutoscalerOptions(),
        profile_from(feature_gates, missing_driver),
        (limits or ExpectedLimits()).expects(feature_gates),
        cluster or ClusterAccess(),
        (leader or LeaderOptions()).over(LEASE),
        listen_address(listen) if listen else None,
        _token(plan_token_file),
        dry_run=dry_run,
    )
    work.check()
    try:
        return run_daemon(work.process())
    except (ProviderOptionError, ConfigFileError) as error:
        raise BadInput(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Work:
    """What the command line asked for."""

    cloud: ProviderOptions
    options: AutoscalerOptions
    profile: Profile
    expects: Expects
    cluster: ClusterAccess
    leader: LeaderSettings
    listen: tuple[str, int] | None
    token: str
    dry_run: bool

    def check(self) -> None:
        """BadInput if it makes no sense."""
        try:
            parse_expanders(self.options.expander)
            read_resource_limits(self.options)
            check_options(self.cloud)
        except (ProviderOptionError, ConfigFileError, ExpanderError, ResourceLimitError) as error:
            raise BadInput(printable(str(error))) from None

    def process(self) -> DaemonProcess[Client]:
        """The autoscaler as a process."""
        identity, registry = process_identity(), CollectorRegistry()
        daemon = AutoscalerDaemon(
            self._open,
            self.options,
            profile=self.profile,
            registry=registry,
            instance=identity,
            show=show_decision if self.dry_run else None,
            expects=self.expects,
        )
        leader = replace(self.leader, elect=self.leader.elect and not self.dry_run)
        return DaemonProcess(
            connect=lambda: self.cluster.connect(BUDGET),
            lead=elected(daemon.lead, leader, identity),
            report=lambda error: log.error("%s", error),
            failures=(ClientError, NodeGroupError),
            health=self._health(daemon, registry),
            loaded=daemon.ready,
        )

    def _open(self, client: Client) -> AbstractAsyncContextManager[Provider]:
        return open_provider(self.cloud, client, writes=not self.dry_run)

    def _health(
        self, daemon: AutoscalerDaemon, registry: CollectorRegistry
    ) -> HealthEndpoint | None:
        if self.listen is None:
            return None
        pages = HealthPages(
            lambda: _not_ready(daemon),
            lambda: generate_latest(registry),
            {"/plan": lambda: msgspec.json.encode(daemon.plans())},
            self.token,
        )
        return HealthEndpoint(
            "--listen",
            *self.listen,
            pages,
            lambda url: log.info("serving health, metrics and plans at %s", url),
        )


def _not_ready(daemon: AutoscalerDaemon) -> str:
    """A replica that waits to lead is ready to."""
    return "the cache is not filled yet" if daemon.is_starting else ""


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--plan-token-file {path}: {error}") from None
    if len(token) < SHORTEST_TOKEN:
        raise BadInput(f"--plan-token-file {path}: a token has {SHORTEST_TOKEN} characters or more")
    return token
