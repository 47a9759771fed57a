"""The API server's inner part, without HTTP: what a run in virtual time works on."""

from __future__ import annotations

from random import Random

from bayplan.embedded.apiserver.admission.builtin import BuiltinAdmission
from bayplan.embedded.apiserver.controllers.garbage import GarbageCollector
from bayplan.embedded.apiserver.controllers.namespaces import NamespaceController
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.fields import CatalogFields
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.seed import seed
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.store import Store
from bayplan.kube.clock import Clock

_JOURNAL = 64
"""Nobody watches by HTTP, so hardly any history is kept."""


class ControlPlane:
    """Store, validation, admission and garbage collection of one cluster, in memory."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        catalog = Catalog()
        self.store = Store(Database(None), CatalogFields(catalog), _JOURNAL)
        self.backend = Backend(self.store, catalog, clock, rng)
        self.backend.admission.mutating.append(BuiltinAdmission(self.backend).step())
        self._controllers = (GarbageCollector(self.backend), NamespaceController(self.backend))

    async def start(self) -> None:
        """Make what every cluster has, and begin to collect garbage."""
        await seed(self.backend)
        for controller in self._controllers:
            controller.start()

    async def tidy(self) -> None:
        """Collect all garbage that there is now."""
        for controller in self._controllers:
            await controller.drain()

    async def stop(self) -> None:
        """Let go of everything."""
        for controller in self._controllers:
            await controller.stop()
        self.store.close()
