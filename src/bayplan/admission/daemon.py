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
from bayplan.admission.certificates import BundleError, CertificateSource, Proof, end_of
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
"""How often certificates and configurations are looked at."""
SETTLE_SECONDS = 5.0
"""How long API servers have to hear of a new authority before they meet what it has signed."""


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
        self._shown: Proof | None = None
        self.app = AdmissionApp(AdmissionRules(settings, self._index), self._metrics)
        self.service = f"{registration.namespace}/{registration.name}"
        """By which name API servers of the same process find it."""
        self.ready = asyncio.Event()
        """Set once it has a certificate and API servers know it by that."""

    async def lead(self, client: Client, listener: socket.socket | None = None) -> None:
        """Answer until cancelled; over HTTPS if there is a socket to listen on."""
        async with AsyncExitStack() as stack:
            informers = await stack.enter_async_context(Informers(client))
            following = asyncio.ensure_future(self._follow(informers))
            stack.callback(following.cancel)
            await self._until_shown(client)
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

    async def _until_shown(self, client: Client) -> None:
        """Look for a first certificate until there is one."""
        while not await self._check(client):
            await client.clock.sleep(SETTLE_SECONDS)

    async def _check(self, client: Client) -> bool:
        """Look whether certificate and configurations are as they should be; False if not."""
        try:
            proof = await self._source.current(client)
            changed = await self._installer.install(client, proof.trusted)
            await self._show(client, proof, heard=not changed or self._shown is None)
        except (ClientError, BundleError, OSError) as error:
            log.warning("updating certificates and configurations failed: %s", error)
            return False
        return True

    async def _show(self, client: Client, proof: Proof, *, heard: bool) -> None:
        if self._shown is not None and proof.pair == self._shown.pair:
            return
        if not heard:
            await client.clock.sleep(SETTLE_SECONDS)
        load_key_pair(self._tls, proof.pair)
        self._shown = proof
        self._metrics.expiry.set(end_of(proof.pair).timestamp())
        log.info("serving a certificate that expires at %s", end_of(proof.pair).isoformat())
