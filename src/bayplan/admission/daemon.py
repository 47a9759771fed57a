"""The webhook as a daemon: it follows the queues, keeps its certificates, and answers.

Unlike others it is not elected: every replica answers. What they share, the Secret and the
configurations, is written by the replica that comes first.

    daemon = WebhookDaemon(settings, registration, source)
    async with VirtualLab(spec, [daemon.lead], webhooks={daemon.service: daemon.app}) as lab: ...

In a process of its own it also listens, once it has a certificate to show; in a lab API servers of
the same process call its `app` directly.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from bayplan.admission.app import AdmissionApp, serving
from bayplan.admission.certificates import (
    BundleError,
    CertificateSource,
    ServingCertificate,
    end_of,
)
from bayplan.admission.configurations import Installer, Registration
from bayplan.admission.metrics import AdmissionMetrics
from bayplan.admission.queue_index import QueueIndex
from bayplan.admission.rules import AdmissionRules, AdmissionSettings
from bayplan.client import Client, Informers
from bayplan.client.errors import ClientError
from bayplan.client.serving.certificates import load_key_pair, server_tls
from bayplan.kube.volcano import Queue

log = logging.getLogger(__name__)
CHECK_SECONDS = 30.0
"""The interval in which certificates and configurations are checked."""
SETTLE_SECONDS = 5.0
"""The time for API servers to load a new CA before a certificate of it is served."""


class WebhookDaemon:
    """A webhook that can be started on any client."""

    def __init__(
        self,
        settings: AdmissionSettings,
        registration: Registration,
        source: CertificateSource,
        *,
        registry: CollectorRegistry | None = None,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self._index = QueueIndex()
        self._metrics = AdmissionMetrics(registry or CollectorRegistry())
        self._installer = Installer(registration)
        self._source = source
        self._check_seconds = check_seconds
        self._tls = server_tls()
        self._served: ServingCertificate | None = None
        self.app = AdmissionApp(AdmissionRules(settings, self._index), self._metrics)
        self.service = f"{registration.namespace}/{registration.name}"
        """The namespace/name of its service, by which API servers in the same process call it."""
        self.ready = asyncio.Event()
        """Set while it has a certificate and both configurations are up to date."""

    async def lead(self, client: Client, listener: socket.socket | None = None) -> None:
        """Serve until cancelled; over HTTPS if there is a socket."""
        async with AsyncExitStack() as stack:
            informers = await stack.enter_async_context(Informers(client))
            following = asyncio.ensure_future(self._follow(informers))
            stack.callback(following.cancel)
            await self._wait_for_certificate(client)
            if listener is not None:
                await stack.enter_async_context(serving(self.app, listener, self._tls))
            self.ready.set()
            log.info("webhook ready")
            stack.callback(self.ready.clear)
            while True:
                await client.clock.sleep(self._check_seconds)
                await self._check(client)

    async def _follow(self, informers: Informers) -> None:
        queues = informers.of(Queue)
        await queues.synced.wait()
        queues.on_change(self._index.take)
        self.app.knows_queues.set()

    async def _wait_for_certificate(self, client: Client) -> None:
        """Wait for the first certificate."""
        while not await self._check(client):
            await client.clock.sleep(SETTLE_SECONDS)

    async def _check(self, client: Client) -> bool:
        """Update the certificate and the configurations; return whether that succeeded."""
        try:
            certificate = await self._source.current(client)
            changed = await self._installer.install(client, certificate.trusted)
            await self._serve(client, certificate, is_trusted=not changed or self._served is None)
        except (ClientError, BundleError, OSError) as error:
            log.warning("updating certificates and configurations failed: %s", error)
            return False
        return True

    async def _serve(
        self, client: Client, certificate: ServingCertificate, *, is_trusted: bool
    ) -> None:
        if self._served is not None and certificate.pair == self._served.pair:
            return
        if not is_trusted:
            await client.clock.sleep(SETTLE_SECONDS)
        load_key_pair(self._tls, certificate.pair)
        self._served = certificate
        self._metrics.expiry.set(end_of(certificate.pair).timestamp())
        log.info("serving a certificate that expires at %s", end_of(certificate.pair).isoformat())
