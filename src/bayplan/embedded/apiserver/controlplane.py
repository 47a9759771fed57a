"""The control plane: all parts of an API server except the sockets.

It wires the store, the kinds, admission with webhooks, authorization, and the controllers that an
API server needs: CRDs, garbage collection, namespaces, event TTL. `app` serves requests;
`ApiServer` adds HTTPS, and `bayplan.embedded.inprocess` lets clients of the same process call it.
Code that needs neither uses `backend`, which also goes through validation, admission and watches.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol, Self

from bayplan.embedded.apiserver.admission.builtin import BuiltinAdmission
from bayplan.embedded.apiserver.admission.webhooks.dispatch import Webhooks
from bayplan.embedded.apiserver.authorization.escalation import EscalationGuard
from bayplan.embedded.apiserver.authorization.rbac import (
    AlwaysAllow,
    AuditingAuthorizer,
    Authorizer,
    RbacAuthorizer,
)
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controllers.definitions import DefinitionController
from bayplan.embedded.apiserver.controllers.garbage import (
    EventTtlController,
    GarbageCollector,
    NamespaceController,
)
from bayplan.embedded.apiserver.http.app import ApiServerApp
from bayplan.embedded.apiserver.http.endpoints import Endpoints, RequestMetrics
from bayplan.embedded.apiserver.identity import Authenticator, load_token, load_tokens
from bayplan.embedded.apiserver.kinds.catalog import Catalog, CatalogFields
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.seed import seed
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.store import ApiObjectStore


class RunnableController(Protocol):
    """A controller that can be started and stopped."""

    def start(self) -> None:
        """Start it."""

    async def stop(self) -> None:
        """Stop it."""


class ControlPlane:
    """The parts of one API server. Create it inside a running event loop."""

    def __init__(self, config: PlaneConfig) -> None:
        self.config = config
        with ExitStack() as opened:
            self.database = Database(config.data, config.durability)
            opened.callback(self.database.close)
            self.admin_token = load_token(self.database)
            authenticator = Authenticator(load_tokens(self.admin_token, config.tokens))
            self.catalog = Catalog()
            fields = CatalogFields(self.catalog)
            self.store = ApiObjectStore(self.database, fields, config.watch_cache_capacity)
            opened.pop_all()
        self.backend = Backend(self.store, self.catalog, config.clock, config.rng)
        self.backend.allow_privileged = config.allow_privileged
        self._webhooks = Webhooks(self.backend, config.webhooks(self.store))
        authorizer = self._set_up_admission()
        self._controllers: list[RunnableController] = [
            DefinitionController(self.backend),
            EventTtlController(self.backend),
        ]
        if config.controllers == "all":
            self._controllers += [GarbageCollector(self.backend), NamespaceController(self.backend)]
        self.metrics = metrics = RequestMetrics(self.store)
        self.endpoints = Endpoints(self.catalog, metrics, lambda: not self.store.closing)
        self.app = ApiServerApp(self.backend, authenticator, authorizer, self.endpoints, metrics)

    def _set_up_admission(self) -> Authorizer:
        """Set up authorization and the admission chain; returns the authorizer."""
        chain = self.backend.admission
        authorizer: Authorizer = AlwaysAllow()
        if self.config.authorization == "rbac":
            authorizer = rbac = RbacAuthorizer(self.store)
            chain.validating.append(EscalationGuard(rbac).validate)
        builtin = BuiltinAdmission(self.backend)
        chain.mutating += [builtin.step(), self._webhooks.mutate]
        chain.validating += [builtin.validate, self._webhooks.validate]
        audit = self.config.audit
        return authorizer if audit is None else AuditingAuthorizer(authorizer, audit)

    async def start(self) -> None:
        """Create the objects that every cluster has, and start the controllers."""
        if self.config.data is not None:  # in memory, batching commits gains nothing
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
