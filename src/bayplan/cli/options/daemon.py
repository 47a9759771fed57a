"""What the commands that run daemons have in common: options, named as in Kubernetes' own daemons,
the address that a daemon listens at, and the call of the runner (`bayplan.client.daemon`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import BadInput
from bayplan.cli.text.output import printable
from bayplan.client.daemon import DaemonProcess
from bayplan.client.election import LeaderSettings, Timing
from bayplan.client.logs import LogFormat, log_to_stderr
from bayplan.client.serving.binding import ListenError
from bayplan.kube.names import is_object_name


def run_daemon(process: DaemonProcess[Any]) -> int:
    """Run it until it ends or a signal comes; BadInput if its address cannot be bound."""
    try:
        return process.run()
    except ListenError as error:
        raise BadInput(str(error)) from None


def listen_address(listen: str, option: str = "--listen") -> tuple[str, int]:
    """Host and port of ADDRESS:PORT; BadInput if it is none."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise BadInput(f"{option} {listen}: must be ADDRESS:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def show_decision(key: str, text: str) -> None:
    """Show what would be done with an object."""
    sys.stdout.write(f"{printable(key)}: {printable(text)}\n")
    sys.stdout.flush()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LogOptions:
    """What is written to standard error."""

    log_format: LogFormat = "text"
    """Lines of text, or of JSON."""
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative=())] = False
    """Say every pod that was bound or refused."""

    def begin(self) -> None:
        """Have all logs of this process written like that; our own in detail if verbose."""
        log_to_stderr(self.log_format, verbose=self.verbose)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LeaderOptions:
    """Replicas, of which one leads; what the configuration says counts unless said here."""

    leader_elect: bool | None = None
    """Lead only while holding the lease; on unless --config says otherwise."""
    leader_elect_resource_name: str | None = None
    """The lease: cluster-autoscaler of an autoscaler, bayplan-node-limits of a node agent; of a
    scheduler kube-scheduler if it serves pods of default-scheduler, else bayplan-scheduler."""
    leader_elect_resource_namespace: str | None = None
    """Its namespace: kube-system."""
    leader_elect_lease_duration: str | None = None
    """How long others wait after the last renewal that they saw: 15s."""
    leader_elect_renew_deadline: str | None = None
    """How long the leader tries to renew before it gives up: 10s."""
    leader_elect_retry_period: str | None = None
    """How long everybody waits between two tries: 2s."""

    def over(self, said: LeaderSettings) -> LeaderSettings:
        """The settings, with what was said here."""
        return LeaderSettings(
            elect=said.elect if self.leader_elect is None else self.leader_elect,
            namespace=_name(self.leader_elect_resource_namespace, said.namespace, "namespace"),
            name=_name(self.leader_elect_resource_name, said.name, "name"),
            timing=self._timing(said.timing),
        )

    def _timing(self, said: Timing) -> Timing:
        lease = _seconds(self.leader_elect_lease_duration, said.lease_duration, "lease-duration")
        renew = _seconds(self.leader_elect_renew_deadline, said.renew_deadline, "renew-deadline")
        retry = _seconds(self.leader_elect_retry_period, said.retry_period, "retry-period")
        try:
            return Timing(lease, renew, retry)
        except ValueError as error:
            raise BadInput(f"--leader-elect: {error}") from None


def _name(said: str | None, usual: str, what: str) -> str:
    if said is None:
        return usual
    if not is_object_name(said):
        option = f"--leader-elect-resource-{what}"
        raise BadInput(f"{option} {printable(said[:80])}: cannot be a name")
    return said


def _seconds(said: str | None, usual: float, what: str) -> float:
    try:
        return usual if said is None else parse_duration(said)
    except DurationError as error:
        raise BadInput(f"--leader-elect-{what}: {error}") from None
