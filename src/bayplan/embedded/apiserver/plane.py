"""The control plane: everything of an API server but the sockets, wired once.

Store, kinds, admission with webhooks, authorization, and the controllers without which an API
server's promises would not hold: custom kinds, garbage collection, namespaces, the end of old
events. `app` answers requests; `ApiServer` puts HTTPS before it, and `bayplan.embedded.inprocess`
lets clients of the same process call it. Code that needs neither uses `backend`, which goes through
validation, admission and watches all the same.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol, Self

from bayplan.embedded.apiserver.admission.builtin import BuiltinAdmission
from bayplan.embedded.apiserver.admission.webhooks.dispatch import Webhooks
from bayplan.embedded.apiserver.authorization.escalation import EscalationGuard
from bayplan.embedded.apiserver.authorization.rbac import AlwaysAllow, Audited, Authorizer, Rbac
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controllers.definitions import DefinitionController
from bayplan.embedded.apiserver.controllers.garbage import (
    EventReaper,
    GarbageCollector,
    NamespaceController,
)
from bayplan.embedded.apiserver.http.app import App
from bayplan.embedded.apiserver.http.endpoints import Endpoints, Metrics
from bayplan.embedded.apiserver.identity import Authenticator, load_token, load_tokens
from bayplan.embedded.apiserver.kinds.catalog import Catalog, CatalogFields
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.seed import seed
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.store import Store


class Controller(Protocol):
    """Keeps something in order until it is stopped."""

    def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """Stop."""


class ControlPlane:
    """One API server's parts. Make it inside a running event loop."""

    def __init__(self, config: PlaneConfig) -> None:
        self.config = config
        with ExitStack() as opened:
            self.database = Database(config.data, config.durability)
            opened.callback(self.database.close)
            self.admin_token = load_token(self.database)
            authenticator = Authenticator(load_tokens(self.admin_token, config.tokens))
            self.catalog = Catalog()
            fields = CatalogFields(self.catalog)
            self.store = Store(self.database, fields, config.watch_cache_capacity)
            opened.pop_all()
        self.backend = Backend(self.store, self.catalog, config.clock, config.rng)
        self.backend.allow_privileged = config.allow_privileged
        self._webhooks = Webhooks(self.backend, config.webhooks(self.store))
        authorizer = self._admit()
        self._controllers: list[Controller] = [
            DefinitionController(self.backend),
            EventReaper(self.backend),
        ]
        if config.controllers == "all":
            self._controllers += [GarbageCollector(self.backend), NamespaceController(self.backend)]
        self.metrics = metrics = Metrics(self.store)
        self.endpoints = Endpoints(self.catalog, metrics, lambda: not self.store.closing)
        self.app = App(self.backend, authenticator, authorizer, self.endpoints, metrics)

    def _admit(self) -> Authorizer:
        """Set up who may do what, and who else has a say."""
        chain = self.backend.admission
        authorizer: Authorizer = AlwaysAllow()
        if self.config.authorization == "rbac":
            authorizer = rbac = Rbac(self.store)
            chain.validating.append(EscalationGuard(rbac).validate)
        builtin = BuiltinAdmission(self.backend)
        chain.mutating += [builtin.step(), self._webhooks.mutate]
        chain.validating += [builtin.validate, self._webhooks.validate]
        told = self.config.audit
        return authorizer if told is None else Audited(authorizer, told)

    async def start(self) -> None:
        """Make what every cluster has, and begin to keep it in order."""
        if self.config.data is not None:  # in memory nothing is gained by waiting for others
            self.database.schedule = asyncio.get_running_loop().call_soon
        await seed(self.backend)
        for controller in self._controllers:
            controller.start()

    async def stop(self) -> None:
        """End watches and controllers, and close the data file."""
        self.store.release()
        for controller in self._controllers:
            await controller.stop()
        await self._webhooks.close()
        self.store.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()
