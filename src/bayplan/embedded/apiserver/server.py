"""The server as a whole: start it, use it, stop it.

    async with ApiServer(ServerConfig()) as server:
        print(server.url, server.kubeconfig)

Controllers in the same process may use `server.backend` directly, which goes through validation,
admission and watches but not through HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from types import TracebackType
from typing import Self

import uvicorn

from bayplan.embedded.apiserver.admission.builtin import BuiltinAdmission
from bayplan.embedded.apiserver.admission.webhooks.dispatch import Webhooks
from bayplan.embedded.apiserver.authorization.authorizer import AlwaysAllow, Authorizer
from bayplan.embedded.apiserver.authorization.escalation import EscalationGuard
from bayplan.embedded.apiserver.authorization.rbac import Rbac
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.controllers.events import EventReaper
from bayplan.embedded.apiserver.controllers.garbage import GarbageCollector
from bayplan.embedded.apiserver.controllers.namespaces import NamespaceController
from bayplan.embedded.apiserver.crds.controller import DefinitionController
from bayplan.embedded.apiserver.http.app import App
from bayplan.embedded.apiserver.http.endpoints import Endpoints
from bayplan.embedded.apiserver.http.metrics import Metrics
from bayplan.embedded.apiserver.http.wire.protocol import Connection
from bayplan.embedded.apiserver.identity.authenticator import Authenticator
from bayplan.embedded.apiserver.identity.authority import KeyPair
from bayplan.embedded.apiserver.identity.credentials import (
    load_authority,
    load_token,
    load_tokens,
    server_context,
)
from bayplan.embedded.apiserver.identity.kubeconfig import (
    check_place,
    kubeconfig,
    write_private,
)
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.fields import CatalogFields
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.seed import seed
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.store import Store

_POLL_SECONDS = 0.005


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: whoever runs the event loop decides about signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class ApiServer:
    """One API server."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        if config.kubeconfig is not None:
            check_place(config.kubeconfig)
        with contextlib.ExitStack() as opened:
            self._socket = opened.enter_context(_listen(config.host, config.port))
            self._database = Database(config.data, config.durability)
            opened.callback(self._database.close)
            self.authority = load_authority(self._database, config.clock.now())
            self.admin_token = load_token(self._database)
            self._authenticator = Authenticator(load_tokens(self.admin_token, config.tokens))
            opened.pop_all()
        self.catalog = Catalog()
        self.store = Store(self._database, CatalogFields(self.catalog), config.journal_capacity)
        self.backend = Backend(self.store, self.catalog, config.clock, config.rng)
        self._webhooks = Webhooks(self.backend)
        self._controllers = (
            DefinitionController(self.backend),
            GarbageCollector(self.backend),
            NamespaceController(self.backend),
            EventReaper(self.backend),
        )
        self.address = _address(self._socket)
        self.url = f"https://{self.address}"
        self.kubeconfig = kubeconfig(
            self.url, self.authority.pair.certificate, "admin", {"token": self.admin_token}
        )
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self._admit()

    def _admit(self) -> None:
        """Set up who may do what, and who else has a say."""
        chain = self.backend.admission
        self._authorizer: Authorizer = AlwaysAllow()
        if self.config.authorization == "rbac":
            self._authorizer = rbac = Rbac(self.store)
            chain.validating.append(EscalationGuard(rbac).validate)
        chain.mutating += [BuiltinAdmission(self.backend).step(), self._webhooks.mutate]
        chain.validating += [self._webhooks.validate]

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

    async def start(self) -> None:
        """Begin to serve; returns when clients can connect."""
        self._database.schedule = asyncio.get_running_loop().call_soon
        await seed(self.backend)
        for controller in self._controllers:
            controller.start()
        self._server = _Uvicorn(self._uvicorn_config())
        self._task = asyncio.create_task(self._server.serve([self._socket]), name="apiserver")
        while not self._server.started and not self._task.done():  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        if self.config.kubeconfig is not None:
            write_private(self.config.kubeconfig, self.kubeconfig)

    async def stop(self) -> None:
        """End watches, let other requests finish, and close the data file."""
        self.store.release()
        for controller in self._controllers:
            await controller.stop()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        await self._webhooks.close()
        self._socket.close()
        self.store.close()

    async def wait(self) -> None:
        """Return when the server has stopped."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def client_certificate(self, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A certificate by which a client is a certain user."""
        return self.authority.client_pair(user, groups, self.config.clock.now())

    def _uvicorn_config(self) -> uvicorn.Config:
        config = uvicorn.Config(
            self._app(),
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=120,
            timeout_graceful_shutdown=self.config.grace_seconds,
        )
        config.load()
        config.ssl = self._tls()
        return config

    def _app(self) -> App:
        metrics = Metrics(self.store)
        endpoints = Endpoints(self.catalog, self.address, metrics, lambda: not self.store.closing)
        return App(self.backend, self._authenticator, self._authorizer, endpoints, metrics)

    def _tls(self) -> ssl.SSLContext:
        names = ("127.0.0.1", "::1", "localhost", "kubernetes.default.svc", self.config.host)
        now = self.config.clock.now()
        return server_context(self.authority, [name for name in names if name], now)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as problem:
        reason = str(problem.strerror).partition(" (while ")[0]
        raise OSError(f"{host}:{port}: {reason}") from problem
    # Accepted connections inherit this; asyncio sets it only where it made the socket itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
