"""`bayplan autoscaler`: scale node groups up for pending pods, and down when nodes are unneeded.

Flags that Cluster Autoscaler has have the same names and meaning.
"""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.autoscaler.cloudstate.reader import AmendTemplate
from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.estimate.limits import ResourceLimitError, read_resource_limits
from bayplan.autoscaler.expanders import ExpanderError, check_expanders
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import encode_plans
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
from bayplan.client.client import Client, ClientOptions
from bayplan.client.daemon import (
    DaemonProcess,
    HealthEndpoint,
    elected,
    process_identity,
)
from bayplan.client.election import LeaderElectionSettings
from bayplan.client.errors import ClientError
from bayplan.client.serving.health import HealthPages
from bayplan.fit import Profile
from bayplan.nodegroups import NodeGroupError, Provider

log = logging.getLogger(__name__)
BUDGET = ClientOptions(qps=200.0, burst=400, in_flight=32)
LEASE = LeaderElectionSettings(name="cluster-autoscaler")
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
    """Scale node groups up for pending pods, and down when nodes are unneeded, until interrupted.

    SIGTERM and Ctrl-C stop it gracefully.

    Parameters
    ----------
    listen
        Address and port of /healthz, /readyz, /livez, /metrics and /plan; port 0 chooses a free
        one, an empty value disables them. /plan shows the decisions of the last loops; requests
        from other machines need the token.
    plan_token_file
        A file with the token for requests to /plan from other machines.
    dry_run
        Print the intended requests to the cloud; write nothing, not even events or a lease.
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
    """The parsed command line."""

    cloud: ProviderOptions
    options: AutoscalerOptions
    profile: Profile
    expects: AmendTemplate
    cluster: ClusterAccess
    leader: LeaderElectionSettings
    listen: tuple[str, int] | None
    token: str
    dry_run: bool

    def check(self) -> None:
        """Raise BadInput for invalid options."""
        try:
            check_expanders(self.options)
            read_resource_limits(self.options)
            check_options(self.cloud)
        except (ProviderOptionError, ConfigFileError, ExpanderError, ResourceLimitError) as error:
            raise BadInput(printable(str(error))) from None

    def process(self) -> DaemonProcess[Client]:
        """Return the process of the autoscaler."""
        identity, registry = process_identity(), CollectorRegistry()
        daemon = AutoscalerDaemon(
            self._open,
            self.options,
            profile=self.profile,
            registry=registry,
            instance=identity,
            show=show_decision if self.dry_run else None,
            amend_template=self.expects,
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
            {"/plan": lambda: encode_plans(daemon.plans())},
            self.token,
        )
        return HealthEndpoint(
            "--listen",
            *self.listen,
            pages,
            lambda url: log.info("serving health, metrics and plans at %s", url),
        )


def _not_ready(daemon: AutoscalerDaemon) -> str:
    """Return why it is not ready; a replica that waits to become leader is ready."""
    return "the cache is not filled yet" if daemon.is_starting else ""


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--plan-token-file {path}: {error}") from None
    if len(token) < SHORTEST_TOKEN:
        raise BadInput(
            f"--plan-token-file {path}: the token must have at least {SHORTEST_TOKEN} characters"
        )
    return token
