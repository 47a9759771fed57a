"""The admission webhook of a lab: inside the process, or over HTTPS.

In virtual time nothing listens: the server calls the webhook's application. In a live lab it is
served on a free port of this machine, and registered by its URL as it would be elsewhere.

A data file outlives the lab, and a registration without a webhook would refuse pods in the next
one: a registration left by an earlier lab is removed first, and that of this lab at its end.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from contextlib import closing, suppress
from dataclasses import replace

from bayplan.admission.certificates import SharedSecret
from bayplan.admission.configurations import MUTATING, VALIDATING, Registration
from bayplan.admission.daemon import WebhookDaemon
from bayplan.admission.rules import AdmissionSettings
from bayplan.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.serving.sockets import address_of, listening_socket
from bayplan.deploy import crds
from bayplan.embedded.asgi import App
from bayplan.embedded.simulation.clusterfile import ClusterSpec, WorkloadSpec
from bayplan.kube.gates import FeatureGates

_HOST = "127.0.0.1"


class LabWebhook:
    """The admission webhook of a lab."""

    def __init__(self, schedulers: tuple[str, ...], gates: FeatureGates) -> None:
        self._settings = AdmissionSettings(frozenset(schedulers), gates)
        self._registration = Registration(schedulers=schedulers, conditions=False)
        namespace, name = self._registration.namespace, self._registration.name
        self._in_process = self._hook(self._registration, f"{name}.{namespace}.svc")
        self.webhooks: Mapping[str, App] = {self._in_process.service: self._in_process.app}
        """The applications that the server in this process calls, by service."""

    async def lead(self, client: Client) -> None:
        """Serve the API server in this process until cancelled."""
        await self._run(client, self._in_process.lead(client))

    async def lead_live(self, client: Client) -> None:
        """Serve over HTTPS until cancelled."""
        with closing(listening_socket(_HOST, 0)) as listener:
            registration = replace(self._registration, url=f"https://{address_of(listener)}")
            await self._run(client, self._hook(registration, _HOST).lead(client, listener))

    def _hook(self, registration: Registration, name: str) -> WebhookDaemon:
        source = SharedSecret(registration.namespace, registration.name, (name,))
        return WebhookDaemon(self._settings, registration, source)

    async def _run(self, client: Client, leading: Coroutine[None, None, None]) -> None:
        await self._unregister(client)
        try:
            await leading
        finally:
            with suppress(ClientError):
                await self._unregister(client)

    async def _unregister(self, client: Client) -> None:
        for resource in (MUTATING, VALIDATING):
            with suppress(NotFoundError):
                await client.delete(resource, self._registration.name)


def with_queue_kinds(spec: ClusterSpec) -> ClusterSpec:
    """Return the cluster with the kinds Queue and PodGroup in it from the start."""
    kinds = WorkloadSpec("queues", tuple(crds.definition(name) for name in crds.QUEUEING))
    return replace(spec, workloads=(kinds, *spec.workloads))
