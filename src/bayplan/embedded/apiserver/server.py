"""The API server: a control plane behind HTTPS.

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
from types import TracebackType
from typing import Self

from bayplan.client.serving.certificates import KeyPair
from bayplan.client.serving.sockets import UvicornServer, address_of, https_config, listening_socket
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.http.wire.protocol import committing
from bayplan.embedded.apiserver.identity import (
    check_kubeconfig_path,
    kubeconfig,
    load_authority,
    server_context,
    write_private,
)

_PORT = "port"
"""Key of the port in the data file."""


class ApiServer:
    """One API server."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        if config.kubeconfig is not None:
            check_kubeconfig_path(config.kubeconfig)
        with contextlib.ExitStack() as opened:
            self.plane = ControlPlane(config)
            opened.callback(self.plane.database.close)
            self._socket = opened.enter_context(self._listen())
            self.address = self.plane.endpoints.address = address_of(self._socket)
            self.authority = load_authority(self.plane.database, config.clock.now())
            opened.pop_all()
        self.store = self.plane.store
        self.backend = self.plane.backend
        self.admin_token = self.plane.admin_token
        self.url = f"https://{self.address}"
        self.kubeconfig = kubeconfig(
            self.url, self.authority.pair.certificate, "admin", {"token": self.admin_token}
        )
        self._server: UvicornServer | None = None
        self._task: asyncio.Task[None] | None = None

    def _listen(self) -> socket.socket:
        """Return the listening socket; without a configured port, on the port of the last run."""
        host, port, database = self.config.host, self.config.port, self.plane.database
        kept = int(database.get_meta(_PORT) or 0) if port == 0 else 0
        try:
            listener = listening_socket(host, port or kept)
        except OSError:
            if not kept:
                raise
            listener = listening_socket(host, 0)  # another process uses it now
        if port == 0:
            database.put_meta(_PORT, str(listener.getsockname()[1]).encode())
        return listener

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
        """Start serving; returns when clients can connect."""
        await self.plane.start()
        self._server = UvicornServer(
            https_config(
                self.plane.app,
                self._tls(),
                committing(self.plane.database.commit),
                grace_seconds=self.config.grace_seconds,
            )
        )
        self.plane.database.on_failure.append(self._give_up)
        self._task = await self._server.begin(self._socket, "apiserver")
        if self.config.kubeconfig is not None:
            write_private(self.config.kubeconfig, self.kubeconfig)

    async def stop(self) -> None:
        """End watches, let other requests finish, and close the data file."""
        self.store.release()
        if self._server is not None and self._task is not None:
            self._server.end()
            await self._task
        self._socket.close()
        await self.plane.stop()

    async def wait(self) -> None:
        """Return when the server has stopped; StoreError if its data file failed."""
        if self._task is not None:
            await asyncio.wait((self._task,))
        if self.plane.database.failure is not None:
            raise self.plane.database.failure

    def _give_up(self) -> None:
        """Stop at once without any further response: the data file cannot be written."""
        if self._server is not None:
            self._server.end(at_once=True)
            for connection in tuple(self._server.server_state.connections):
                connection.transport.abort()

    def client_certificate(self, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """Return a client certificate of a user."""
        return self.authority.client_pair(user, groups, self.config.clock.now())

    def _tls(self) -> ssl.SSLContext:
        names = ("127.0.0.1", "::1", "localhost", "kubernetes.default.svc", self.config.host)
        now = self.config.clock.now()
        return server_context(self.authority, [name for name in names if name], now)
