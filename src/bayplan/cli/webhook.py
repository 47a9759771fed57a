"""`bayplan webhook`: gate pods of queues, and validate queues, pod groups and pods."""

from __future__ import annotations

import gc
import logging
import socket
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from cyclopts import Parameter
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.admission.certificates import CertificateFiles, CertificateSource, SharedSecret
from bayplan.admission.configurations import FailurePolicy, Registration
from bayplan.admission.daemon import WebhookDaemon
from bayplan.admission.rules import AdmissionSettings
from bayplan.base.durations import DurationError, parse_duration
from bayplan.base.garbage import RARELY
from bayplan.cli.errors import BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.cluster import Gates, gates_from
from bayplan.cli.options.daemon import LogOptions, listen_address, run_daemon
from bayplan.cli.text.output import printable
from bayplan.client.client import Client
from bayplan.client.daemon import DaemonProcess, HealthEndpoint
from bayplan.client.errors import ClientError
from bayplan.client.serving.health import HealthPages
from bayplan.client.serving.sockets import address_of
from bayplan.client.serving.sockets import listening_socket as listen_on
from bayplan.kube.names import is_subdomain

log = logging.getLogger(__name__)
_SHORTEST = 0.1


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """The certificate of the webhook."""

    tls_cert_file: Path | None = None
    """A certificate file, reloaded when it changes; by default a certificate is created, stored in
    the Secret of --service, and renewed."""
    tls_private_key_file: Path | None = None
    """The key of --tls-cert-file."""

    def source(self, registration: Registration, names: list[str]) -> CertificateSource:
        """Return the source of the certificate; BadInput if the files are invalid."""
        certificate, key = self.tls_cert_file, self.tls_private_key_file
        if (certificate is None) is not (key is None):
            raise BadInput("--tls-cert-file and --tls-private-key-file must be given together")
        if certificate is None or key is None:
            return SharedSecret(registration.namespace, registration.name, tuple(names))
        for path in (certificate, key):
            if not path.is_file():
                raise BadInput(f"{path}: not a file")
        return CertificateFiles(certificate, key)


def webhook(  # noqa: PLR0913 - one for each option of the command
    *,
    scheduler_name: tuple[str, ...] = (),
    cluster: ClusterAccess | None = None,
    feature_gates: Gates = "",
    listen: str = "127.0.0.1:0",
    health_listen: str = "127.0.0.1:0",
    service: str = "kube-system/bayplan-webhook",
    url: str = "",
    failure_policy: Annotated[FailurePolicy | None, Parameter(show_choices=True)] = None,
    check_interval: str = "30s",
    certificate: CertificateOptions | None = None,
    logs: LogOptions | None = None,
) -> int:
    """Serve admission reviews of the API server until interrupted.

    New pods that request it get a scheduling gate, so that autoscalers ignore them until their
    queue admits them. Invalid Queues, PodGroups and pods are refused. The webhook registers itself:
    it creates its configurations, or updates the certificates in existing ones. Any number of
    replicas can run.

    Parameters
    ----------
    scheduler_name
        Gate pods of this schedulerName, by default bayplan; may be repeated.
    listen
        Address and port of the reviews, over HTTPS; port 0 chooses a free one.
    health_listen
        Address and port of /healthz, /readyz, /livez and /metrics, without authentication; an empty
        value disables them.
    service
        The Service of the webhook, as NAMESPACE/NAME; its name is also that of the configurations
        and of the Secret.
    url
        The URL of the webhook, instead of a Service, such as https://host:9443; port 0 stands for
        the port of --listen.
    failure_policy
        What the API server does if the webhook fails: Fail refuses the request, Ignore accepts it.
        By default Fail in new configurations; existing ones are not changed.
    check_interval
        How often certificates and configurations are checked.
    """
    (logs or LogOptions()).begin()
    settings = AdmissionSettings(_schedulers(scheduler_name), gates_from(feature_gates))
    namespace, name = _service(service)
    health = listen_address(health_listen, "--health-listen") if health_listen else None
    try:
        listener = listen_on(*listen_address(listen))
    except OSError as error:
        raise BadInput(f"--listen {error}") from None
    with closing(listener):
        where = _url(url, listener)
        named = tuple(sorted(settings.schedulers))
        known = where.geturl() if where is not None else ""
        registration = Registration(name, namespace, known, failure_policy, named)
        source = (certificate or CertificateOptions()).source(
            registration, _names(registration, where)
        )
        work = _Work(
            settings,
            registration,
            source,
            cluster or ClusterAccess(),
            listener,
            health,
            _interval(check_interval),
        )
        gc.set_threshold(*RARELY)
        return run_daemon(work.process())


@dataclass(frozen=True, slots=True)
class _Work:
    """The parsed command line."""

    settings: AdmissionSettings
    registration: Registration
    source: CertificateSource
    cluster: ClusterAccess
    listener: socket.socket
    health: tuple[str, int] | None
    check_seconds: float

    def process(self) -> DaemonProcess[Client]:
        """Return the process of the webhook."""
        registry = CollectorRegistry()
        daemon = WebhookDaemon(
            self.settings,
            self.registration,
            self.source,
            registry=registry,
            check_seconds=self.check_seconds,
        )
        log.info("serving admission reviews at https://%s", address_of(self.listener))
        return DaemonProcess(
            connect=self.cluster.connect,
            lead=lambda client: daemon.lead(client, self.listener),
            report=lambda error: log.error("%s", error),
            failures=(ClientError, OSError),
            health=self._health(daemon, registry),
        )

    def _health(self, daemon: WebhookDaemon, registry: CollectorRegistry) -> HealthEndpoint | None:
        if self.health is None:
            return None
        pages = HealthPages(lambda: _not_ready(daemon), lambda: generate_latest(registry))
        return HealthEndpoint(
            "--health-listen",
            *self.health,
            pages,
            lambda url: log.info("serving health and metrics at %s", url),
        )


def _not_ready(daemon: WebhookDaemon) -> str:
    return "" if daemon.ready.is_set() else "no certificate is registered with the API server yet"


def _schedulers(names: tuple[str, ...]) -> frozenset[str]:
    for name in names:
        if not is_subdomain(name):
            raise BadInput(f"--scheduler-name {printable(name[:80])}: not a valid name")
    return frozenset(names) or frozenset({"bayplan"})


def _interval(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise BadInput(f"--check-interval: {error}") from None
    if seconds < _SHORTEST:
        raise BadInput(f"--check-interval {printable(text)}: must be {_SHORTEST}s or more")
    return seconds


def _service(service: str) -> tuple[str, str]:
    namespace, slash, name = service.partition("/")
    if not slash or not is_subdomain(namespace) or not is_subdomain(name):
        raise BadInput(f"--service {printable(service[:80])}: must be NAMESPACE/NAME")
    return namespace, name


def _url(url: str, listener: socket.socket) -> SplitResult | None:
    """Return the URL of the webhook, with the port of the listener instead of 0."""
    if not url:
        return None
    try:
        parts = urlsplit(url.rstrip("/"))
        port = parts.port
    except ValueError as error:
        raise BadInput(f"--url {printable(url[:80])}: {error}") from None
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.query:
        raise BadInput(f"--url {printable(url[:80])}: must be https://HOST[:PORT][/PATH]")
    if port == 0:
        parts = parts._replace(netloc=f"{parts.netloc[:-1]}{listener.getsockname()[1]}")
    return parts


def _names(registration: Registration, where: SplitResult | None) -> list[str]:
    """Return the host names that the certificate must be valid for."""
    if where is not None and where.hostname:
        return [where.hostname]
    service = f"{registration.name}.{registration.namespace}.svc"
    return [service, f"{service}.cluster.local"]
