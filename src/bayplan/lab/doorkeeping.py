"""The webhook that gates pods, in a lab: at the side of the API server, or over HTTPS.

In virtual time nothing listens: the server calls the webhook's application. In a live lab it is
served on a free port of this machine, and registered by its URL as it would be elsewhere.

A data file outlives the lab, and a registration without a webhook would keep pods out of the next
one: what an earlier lab has left is taken away first, and what this one has registered at its end.
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
from bayplan.client.serving.sockets import address_of, listen
from bayplan.deploy import crds
from bayplan.embedded.asgi import App
from bayplan.embedded.simulation.clusterfile import ClusterSpec, WorkloadSpec
from bayplan.kube.gates import FeatureGates

_HERE = "127.0.0.1"


class Doorkeeper:
    """The webhook of a lab's crew."""

    def __init__(self, schedulers: tuple[str, ...], gates: FeatureGates) -> None:
        self._settings = AdmissionSettings(frozenset(schedulers), gates)
        self._registration = Registration(schedulers=schedulers, conditions=False)
        namespace, name = self._registration.namespace, self._registration.name
        self._inside = self._hook(self._registration, f"{name}.{namespace}.svc")
        self.webhooks: Mapping[str, App] = {self._inside.service: self._inside.app}
        """By which a server of the same process finds it."""

    async def lead(self, client: Client) -> None:
        """Answer a server of the same process until cancelled."""
        await self._keep(client, self._inside.lead(client))

    async def lead_live(self, client: Client) -> None:
        """Answer over HTTPS until cancelled."""
        with closing(listen(_HERE, 0)) as listener:
            known = replace(self._registration, url=f"https://{address_of(listener)}")
            await self._keep(client, self._hook(known, _HERE).lead(client, listener))

    def _hook(self, registration: Registration, name: str) -> WebhookDaemon:
        source = SharedSecret(registration.namespace, registration.name, (name,))
        return WebhookDaemon(self._settings, registration, source)

    async def _keep(self, client: Client, leading: Coroutine[None, None, None]) -> None:
        await self._withdraw(client)
        try:
            await leading
        finally:
            with suppress(ClientError):
                await self._withdraw(client)

    async def _withdraw(self, client: Client) -> None:
        for resource in (MUTATING, VALIDATING):
            with suppress(NotFoundError):
                await client.delete(resource, self._registration.name)


def with_queue_kinds(spec: ClusterSpec) -> ClusterSpec:
    """The cluster with the kinds Queue and PodGroup in it, from the beginning."""
    kinds = WorkloadSpec("queues", tuple(crds.definition(name) for name in crds.QUEUEING))
    return replace(spec, workloads=(kinds, *spec.workloads))
