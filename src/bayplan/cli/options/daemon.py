"""Options of daemons, with the names of Kubernetes' own daemons, and how daemons are run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import BadInput
from bayplan.cli.text.output import printable
from bayplan.client.daemon import DaemonProcess
from bayplan.client.election import LeaderElectionSettings, LeaseTiming
from bayplan.client.logs import LogFormat, log_to_stderr
from bayplan.client.serving.endpoints import ListenError
from bayplan.kube.names import is_object_name


def run_daemon(process: DaemonProcess[Any]) -> int:
    """Run it until it ends or a signal comes; BadInput if its address cannot be bound."""
    try:
        return process.run()
    except ListenError as error:
        raise BadInput(str(error)) from None


def listen_address(listen: str, option: str = "--listen") -> tuple[str, int]:
    """Parse ADDRESS:PORT; BadInput if it is invalid."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise BadInput(f"{option} {listen}: must be ADDRESS:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def show_decision(key: str, text: str) -> None:
    """Print the decision about an object in a dry run."""
    sys.stdout.write(f"{printable(key)}: {printable(text)}\n")
    sys.stdout.flush()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LogOptions:
    """Logging to standard error."""

    log_format: LogFormat = "text"
    """The log format: lines of text, or of JSON."""
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative=())] = False
    """Also log every pod that was bound or rejected."""

    def begin(self) -> None:
        """Configure the logs of this process; our own in detail if verbose."""
        log_to_stderr(self.log_format, verbose=self.verbose)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LeaderOptions:
    """Leader election between replicas; these flags override the configuration."""

    leader_elect: bool | None = None
    """Be active only while holding the lease; on by default, unless --config disables it."""
    leader_elect_resource_name: str | None = None
    """The name of the lease; by default cluster-autoscaler for an autoscaler, bayplan-node-limits
    for a node agent, and for a scheduler kube-scheduler if it serves default-scheduler, else
    bayplan-scheduler."""
    leader_elect_resource_namespace: str | None = None
    """The namespace of the lease; by default kube-system."""
    leader_elect_lease_duration: str | None = None
    """How long other replicas wait after the last observed renewal; by default 15s."""
    leader_elect_renew_deadline: str | None = None
    """How long the leader tries to renew the lease before it stops leading; by default 10s."""
    leader_elect_retry_period: str | None = None
    """The time between two attempts to acquire or renew the lease; by default 2s."""

    def over(self, configured: LeaderElectionSettings) -> LeaderElectionSettings:
        """Return the configured settings, overridden by these options."""
        namespace = self.leader_elect_resource_namespace
        return LeaderElectionSettings(
            elect=configured.elect if self.leader_elect is None else self.leader_elect,
            namespace=_name(namespace, configured.namespace, "namespace"),
            name=_name(self.leader_elect_resource_name, configured.name, "name"),
            timing=self._timing(configured.timing),
        )

    def _timing(self, configured: LeaseTiming) -> LeaseTiming:
        lease = _seconds(
            self.leader_elect_lease_duration, configured.lease_duration, "lease-duration"
        )
        renew = _seconds(
            self.leader_elect_renew_deadline, configured.renew_deadline, "renew-deadline"
        )
        retry = _seconds(self.leader_elect_retry_period, configured.retry_period, "retry-period")
        try:
            return LeaseTiming(lease, renew, retry)
        except ValueError as error:
            raise BadInput(f"--leader-elect: {error}") from None


def _name(given: str | None, default: str, what: str) -> str:
    if given is None:
        return default
    if not is_object_name(given):
        option = f"--leader-elect-resource-{what}"
        raise BadInput(f"{option} {printable(given[:80])}: not a valid name")
    return given


def _seconds(given: str | None, default: float, what: str) -> float:
    try:
        return default if given is None else parse_duration(given)
    except DurationError as error:
        raise BadInput(f"--leader-elect-{what}: {error}") from None
